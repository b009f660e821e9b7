// The line before each block of samples on the listen socket.
package import Host
import JSON
import Records

/// The facts about the gateway in a header, read for each block.
package struct ListenFacts: Sendable {
    package var deviceID: String
    /// Returns the right wall time of a capture, and false if the clock was never synced.
    package var date: @Sendable (Stamp) -> (wall: WallTime, isSynced: Bool)
    /// Returns the position in degrees (WGS 84); nil if it is not known.
    package var place: @Sendable () -> (latitude: Double, longitude: Double)?

    package init(
        deviceID: String,
        date: @escaping @Sendable (Stamp) -> (wall: WallTime, isSynced: Bool),
        place: @escaping @Sendable () -> (latitude: Double, longitude: Double)?
    ) {
        (self.deviceID, self.date, self.place) = (deviceID, date, place)
    }
}

/// One header: a JSON object in one line, followed by `bytes` bytes of samples.
///
/// See waypost-protocol(7), THE LISTEN SOCKET.
package struct AudioHeader: Decodable, Sendable, Equatable {
    /// The only sample format: 16 bits, signed, little-endian.
    static let format = "S16_LE"
    /// The length limits of a header and of its block, in bytes.
    static let lineLimit = 4096
    static let blockLimit = 1 << 20

    package var run: Int64
    package var frame: Int64
    package var rate: Int
    var channels: Int
    var format: String
    var bytes: Int
    var timestamp: String
    var clock: String
    var boottimeNs: Int64
    package var lost: Int
    package var device: String
    package var latitude: Double?
    package var longitude: Double?

    /// Reads a header; throws a `Failure` that says what is wrong with it.
    init(line: [UInt8]) throws {
        do {
            self = try JSONInput.decode(from: line, snakeCase: true)
        } catch {
            throw Failure("the listen socket sent an unreadable header: \(error)")
        }
        guard format == Self.format, channels == 1, (1...1_000_000).contains(rate),
            (0...Self.blockLimit).contains(bytes), bytes % 2 == 0, lost >= 0, frame >= 0,
            start != nil
        else {
            let text = String(decoding: line, as: UTF8.self).plainWords(atMost: 300)
            throw Failure("the listen socket sent a header of another version: \(text)")
        }
    }

    /// When the first sample was captured.
    package var start: AudioTime? { AudioTime(rfc3339: timestamp) }

    package var isSynced: Bool { clock == "synced" }

    /// Writes the header of a block, with its line end.
    static func line(_ block: AudioBlock, lost: Int, _ facts: ListenFacts) -> [UInt8] {
        let bytes = block.samples.count * 2
        invariant(bytes <= blockLimit, "a block is no longer than its reader takes")
        let (wall, isSynced) = facts.date(block.chunkStart)
        var json = JSONWriter()
        json.object {
            $0.field("run", block.run)
            $0.field("frame", block.frame)
            $0.field("rate", Int64(block.rate))
            $0.field("channels", Int64(1))
            $0.field("format", format)
            $0.field("bytes", Int64(bytes))
            $0.field("timestamp", (AudioTime(wall) + block.offset).rfc3339)
            $0.field("clock", isSynced ? "synced" : "unsynced")
            $0.field("boottime_ns", (block.chunkStart.boot + block.offset).nanoseconds)
            $0.field("lost", Int64(lost))
            $0.field("device", facts.deviceID)
            if let place = facts.place() {
                $0.field("latitude", scaled: Self.scaled(place.latitude), decimals: 7)
                $0.field("longitude", scaled: Self.scaled(place.longitude), decimals: 7)
            }
        }
        return json.bytes + [10]
    }

    private static func scaled(_ degrees: Double) -> Int64 { Int64((degrees * 1e7).rounded()) }
}

/// A point in time to the microsecond and below: samples are closer together than milliseconds.
package struct AudioTime: Sendable, Equatable {
    /// Since 1970 UTC.
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    init(_ wall: WallTime) { nanoseconds = wall.milliseconds &* 1_000_000 }

    /// Parses a time with up to nine digits after the second; nil for anything else.
    package init?(rfc3339 text: String) {
        guard let wall = WallTime(rfc3339: text), wall >= WallTime(milliseconds: 0),
            wall.milliseconds < 9_000_000_000_000
        else { return nil }
        self.init(wall)
        let digits = text.utf8.drop { $0 != UInt8(ascii: ".") }.dropFirst().prefix { $0.isDigit }
        let units: [Int64] = [100_000, 10_000, 1000, 100, 10, 1]
        for (digit, unit) in zip(digits.dropFirst(3), units) {
            nanoseconds += Int64(digit - 48) * unit
        }
    }

    /// RFC 3339 UTC with microseconds: `2026-11-21T04:30:07.123456Z`.
    package var rfc3339: String {
        let micro = String(1000 + nanoseconds / 1000 % 1000).dropFirst()
        return "\(WallTime(milliseconds: nanoseconds / 1_000_000).rfc3339.dropLast())\(micro)Z"
    }

    /// The nearest millisecond.
    package var wall: WallTime {
        WallTime(milliseconds: (nanoseconds + 500_000).floorDivided(by: 1_000_000))
    }

    package static func + (left: Self, right: Duration) -> Self {
        Self(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }
}
