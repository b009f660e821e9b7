// Inspects and normalizes a line of gpsd before libgps gets it.
import Host

/// Reads the parts of a gpsd line that do not go through libgps.
///
/// Only positions go to libgps, to keep hostile bytes in other classes away from it. libgps does
/// not accept `"activated":0` of a lost receiver, nor more than 140 satellites, so DEVICE and SKY
/// objects are read here.
enum GPSDLine {
    /// Bytes: a SKY object with four constellations on several bands has up to 40 kB.
    static let limit = 40_960

    private static let position = Array("{\"class\":\"TPV\"".utf8)
    private static let sky = Array("{\"class\":\"SKY\"".utf8)
    private static let version = Array("{\"class\":\"VERSION\"".utf8)
    private static let receivers = Array("{\"class\":\"DEVICES\"".utf8)
    private static let receiver = Array("{\"class\":\"DEVICE\"".utf8)

    static func isPosition(_ line: [UInt8]) -> Bool { line.starts(with: position) }

    /// Returns whether libgps may unpack this position.
    ///
    /// gpsd sends one class per line. With a second class after a fault, gps_unpack of libgps 3.22
    /// never returns.
    static func isReadable(_ line: [UInt8]) -> Bool {
        isWhole(line) && index(of: Array("\"class\":".utf8), in: line.dropFirst(2)) == nil
    }

    /// Parses a SKY object and its receiver's path; nil for any other line.
    ///
    /// gpsd 3.25 and later usually send the number of satellites used; others send a list of all
    /// satellites, or neither.
    static func sky(_ line: [UInt8]) -> (report: GPSReport, device: String)? {
        guard isWhole(line), line.starts(with: sky) else { return nil }
        let device = texts(of: "device", in: line[...]).first ?? ""
        let number = Array("\"uSat\":".utf8)
        var used: Int?
        if let list = index(of: Array("\"satellites\":[".utf8), in: line[...]) {
            used = count(of: Array("\"used\":true".utf8), in: line[list...])
        } else if let start = index(of: number, in: line[...]) {
            let digits = line[(start + number.count)...].prefix { $0 != UInt8(ascii: ",") }
            used = Int(String(decoding: digits.prefix { $0 != UInt8(ascii: "}") }, as: UTF8.self))
        }
        guard let used, (0...255).contains(used) else { return (.other, device) }
        return (.sky(used: used), device)
    }

    /// Reads from a VERSION object whether this gpsd's `alt` is above mean sea level; nil for any
    /// other line.
    ///
    /// From 3.19 on `alt` is undefined, and `altMSL` or `altHAE` is explicit.
    static func altIsMSL(_ line: [UInt8]) -> Bool? {
        guard isWhole(line), line.starts(with: version),
            let release = texts(of: "release", in: line[...]).first
        else { return nil }
        let numbers = release.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) <= (3, 18)
    }

    /// Parses a DEVICE or DEVICES object; nil for any other line.
    ///
    /// Removes credentials: gpsd up to 3.25 includes the password in the path of an NTRIP caster,
    /// and status and events show paths.
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

    /// Returns whether gpsd has a receiver open: `activated` is then a time, else 0 or missing.
    private static func isOpen(_ path: String, in line: [UInt8]) -> Bool {
        let fields = Array("\"path\":\"\(path)\"".utf8)
        guard let start = index(of: fields, in: line[...]) else { return false }
        let object = line[start...].prefix { $0 != UInt8(ascii: "}") }
        return index(of: Array("\"activated\":\"".utf8), in: object) != nil
    }

    private static func isWhole(_ line: [UInt8]) -> Bool {
        line.last == UInt8(ascii: "}") && !line.contains(0)
    }

    /// Returns the values of every field `"name":"value"`: at most 16, each cut at 127 bytes.
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
        line.indices.first { line[$0] == needle.first && line[$0...].starts(with: needle) }
    }

    private static func count(of needle: [UInt8], in line: ArraySlice<UInt8>) -> Int {
        line.indices.count { line[$0] == needle.first && line[$0...].starts(with: needle) }
    }
}

extension GPSDLine {
    /// Returns the line as libgps expects it, whichever release of gpsd sent it.
    ///
    /// Removes blanks between tokens, turns numeric times (gpsd before 3.0) into text, and renames
    /// an `alt` above mean sea level to `altMSL`.
    static func normalized(_ line: [UInt8], altIsMSL: Bool) -> [UInt8] {
        var line = withoutBlanks(line)
        for name in ["time", "activated"] { rewriteTimes(",\"\(name)\":", in: &line) }
        let name = Array(",\"alt\":".utf8)
        if altIsMSL, let start = index(of: name, in: line[...]) {
            line.replaceSubrange(start..<start + name.count, with: ",\"altMSL\":".utf8)
        }
        return line
    }

    private static func withoutBlanks(_ line: [UInt8]) -> [UInt8] {
        var isInText = false
        var isEscaped = false
        return line.filter { byte in
            if byte == UInt8(ascii: "\""), !isEscaped { isInText.toggle() }
            isEscaped = isInText && !isEscaped && byte == UInt8(ascii: "\\")
            return isInText || byte != UInt8(ascii: " ") && byte != UInt8(ascii: "\t")
        }
    }

    /// Rewrites seconds since 1970 as RFC 3339; the 0 of a receiver that is not open stays.
    private static func rewriteTimes(_ name: String, in line: inout [UInt8]) {
        let name = Array(name.utf8)
        var rest = line.startIndex
        while let start = index(of: name, in: line[rest...]) {
            rest = start + name.count
            let digits = line[rest...].prefix(32).prefix {
                $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "}")
            }
            guard let seconds = Double(String(decoding: digits, as: UTF8.self)), seconds > 0,
                seconds < 1e11
            else { continue }
            let time = WallTime(milliseconds: Int64((seconds * 1000).rounded()))
            line.replaceSubrange(rest..<rest + digits.count, with: "\"\(time.rfc3339)\"".utf8)
        }
    }
}
