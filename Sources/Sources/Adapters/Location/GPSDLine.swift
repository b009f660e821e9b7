// A look at a line of gpsd before libgps gets it.
internal import Host

/// What of a line is understood here, without libgps.
///
/// Only positions and skies go to libgps: other classes would only be a way in for hostile bytes. It does not
/// take `"activated":0` of a lost receiver, so that receivers are read here, too.
enum GPSDLine {
    private static let positions = ["TPV", "SKY"].map { Array("{\"class\":\"\($0)\"".utf8) }
    private static let receivers = Array("{\"class\":\"DEVICES\"".utf8)
    private static let receiver = Array("{\"class\":\"DEVICE\"".utf8)

    /// Whether libgps is to unpack it.
    static func isWanted(_ line: [UInt8]) -> Bool {
        isWhole(line) && positions.contains { line.starts(with: $0) } && !hasSecondClass(line)
    }

    /// gpsd gives one class a line; with another behind a fault, gps_unpack of libgps 3.22 never returns.
    private static func hasSecondClass(_ line: [UInt8]) -> Bool {
        index(of: Array("\"class\":".utf8), in: line.dropFirst(2)) != nil
    }

    /// A DEVICE or DEVICES object; nil for any other line.
    ///
    /// gpsd up to 3.25 gives the path of a caster of corrections with its password, and status and events show paths.
    static func receivers(_ line: [UInt8]) -> GPSReport? {
        guard isWhole(line) else { return nil }
        if line.starts(with: receivers) {
            let all = texts(of: "path", in: line[...])
            let open = all.filter { isOpen($0, in: line) }
            return .receivers(all.map(withoutUser), open: open.map(withoutUser))
        }
        guard line.starts(with: receiver), let path = texts(of: "path", in: line[...]).first else {
            return nil
        }
        return .receiver(path: withoutUser(path), isActive: isOpen(path, in: line))
    }

    /// gpsd gives the time when it opened the receiver, and 0 or nothing once it has closed it.
    private static func isOpen(_ path: String, in line: [UInt8]) -> Bool {
        let fields = Array("\"path\":\"\(path)\"".utf8)
        guard let start = index(of: fields, in: line[...]) else { return false }
        let object = line[start...].prefix { $0 != UInt8(ascii: "}") }
        return index(of: Array("\"activated\":\"".utf8), in: object) != nil
    }

    private static func isWhole(_ line: [UInt8]) -> Bool {
        line.last == UInt8(ascii: "}") && !line.contains(0)
    }

    /// The values of every field `"name":"value"`, at most 16 of at most 127 bytes.
    private static func texts(of name: String, in line: ArraySlice<UInt8>) -> [String] {
        let field = Array("\"\(name)\":\"".utf8)
        var rest = line
        var texts: [String] = []
        while texts.count < 16, let start = index(of: field, in: rest) {
            rest = rest[(start + field.count)...]
            let text = rest.prefix { $0 != UInt8(ascii: "\"") }
            texts.append(String(decoding: text.prefix(127), as: UTF8.self))
        }
        return texts
    }

    private static func index(of needle: [UInt8], in line: ArraySlice<UInt8>) -> Int? {
        line.indices.first { line[$0...].starts(with: needle) }
    }
}
