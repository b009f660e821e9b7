// Reads captures in btsnoop format (BlueZ btsnoop.h; RFC 1761 except for the magic).
import Glibc
import Host

/// Reads the HCI events of a capture in order, one at a time.
struct BtsnoopFile: ~Copyable {
    /// The contents of a record: H4 packets, bare HCI packets, or those of the kernel's monitor.
    private enum Datalink: UInt32 {
        case bare = 1001
        case h4 = 1002
        case monitor = 2001
    }

    private let file: UnsafeMutablePointer<FILE>
    private let path: String
    private let datalink: Datalink
    /// The file ended in the middle of a record.
    private(set) var isTruncated = false

    /// An event and when it was captured, in µs of the capture's own clock.
    struct Record {
        var microseconds: Int64
        var event: ArraySlice<UInt8>
    }

    /// Opens a capture and checks its header.
    ///
    /// - Throws: A `Failure` that says what the file is instead.
    init(path: String) throws {
        guard let file = fopen(path, "rb") else {
            throw Failure("\(path): \(String(cString: strerror(errno)))")
        }
        var header = [UInt8](repeating: 0, count: 16)
        let count = fread(&header, 1, 16, file)
        guard ferror(file) == 0 else {
            let reason = String(cString: strerror(errno))
            fclose(file)
            throw Failure("\(path): \(reason)")
        }
        guard count == 16, header.starts(with: Array("btsnoop".utf8) + [0]) else {
            fclose(file)
            let found =
                count == 0 ? "it is empty" : "it begins with \(hex(header.prefix(min(count, 8))))"
            throw Failure(
                "\(path): not a btsnoop capture: \(found); record one with `btmon -w FILE`"
            )
        }
        var cursor = ByteCursor(header[8...])
        let version = cursor.bigEndian(4) ?? 0
        let link = UInt32(truncatingIfNeeded: cursor.bigEndian(4) ?? 0)
        guard version == 1, let datalink = Datalink(rawValue: link) else {
            fclose(file)
            throw Failure(
                "\(path): btsnoop version \(version), datalink \(link); version 1 with datalink 1001, 1002 or 2001 can be read"
            )
        }
        self.file = file
        self.path = path
        self.datalink = datalink
    }

    deinit {
        fclose(file)
    }

    /// Returns the next event; nil at the end.
    mutating func next() -> Record? {
        while true {
            guard let header = read(24, isStart: true) else { return nil }
            var cursor = ByteCursor(header[...])
            guard cursor.bytes(4) != nil, let length = cursor.bigEndian(4),
                let flags = cursor.bigEndian(4), cursor.bytes(4) != nil,
                let time = cursor.bigEndian(8), length <= 1 << 20
            else {
                isTruncated = true
                return nil
            }
            guard let data = read(Int(length), isStart: false) else { return nil }
            if let event = event(data[...], flags: UInt32(truncatingIfNeeded: flags)) {
                return Record(microseconds: Int64(truncatingIfNeeded: time), event: event)
            }
        }
    }

    private func event(_ data: ArraySlice<UInt8>, flags: UInt32) -> ArraySlice<UInt8>? {
        switch datalink {
        case .h4: data.first == HCI.eventPacket ? data.dropFirst() : nil
        // Bit 0: received, bit 1: command or event.
        case .bare: flags & 3 == 3 ? data : nil
        // The low half of the flags is the monitor's opcode; 3 is an event.
        case .monitor: flags & 0xFFFF == 3 ? data : nil
        }
    }

    private mutating func read(_ count: Int, isStart: Bool) -> [UInt8]? {
        guard count > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: count)
        let got = fread(&bytes, 1, count, file)
        if got == count { return bytes }
        isTruncated = isTruncated || got > 0 || !isStart
        return nil
    }
}
