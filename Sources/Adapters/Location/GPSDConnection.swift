// The connection to gpsd through libgps; its lines are read and split here.
internal import Board
internal import CGPSD
internal import Glibc
internal import Host

/// Owns libgps's data and connection.
struct GPSDConnection: ~Copyable {
    private let data: UnsafeMutablePointer<gps_data_t>
    private let name: String

    /// Connects and asks for reports.
    ///
    /// Throws a Failure that says what to do.
    init(host: String, port: UInt16) throws {
        let name = "gpsd at \(host):\(port)"
        let data = UnsafeMutablePointer<gps_data_t>.allocate(capacity: 1)
        data.initialize(to: gps_data_t())
        // Properties are set last: a throw after that would run deinit on a connection that never was.
        guard gps_open(host, String(port), data) == 0 else {
            // libgps gives codes of its own below 0, and errno above; gps_errstr knows both.
            let reason = gps_errstr(errno).map { String(cString: $0) } ?? "no answer"
            data.deallocate()
            throw Failure("\(name): \(reason); is it running? `systemctl status gpsd.socket`")
        }
        guard Self.watch(data) else {
            gps_close(data)
            data.deallocate()
            throw Failure("\(name): it took no WATCH request")
        }
        self.name = name
        self.data = data
    }

    deinit {
        gps_close(data)
        data.deallocate()
    }

    var descriptor: Int32 { Int32(data.pointee.gps_fd) }

    /// Asks gpsd to report (again).
    borrowing func watch() -> Bool { Self.watch(data) }

    private static func watch(_ data: UnsafeMutablePointer<gps_data_t>) -> Bool {
        gps_stream(data, UInt32(WATCH_ENABLE | WATCH_JSON), nil) >= 0
    }

    /// What has arrived, or nothing; throws when gpsd closed the connection.
    borrowing func read() throws -> ArraySlice<UInt8> {
        var buffer = [UInt8](repeating: 0, count: 8192)
        let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        let code = errno
        if count > 0 { return buffer[..<count] }
        if count == 0 { throw Failure("\(name): it closed the connection") }
        guard code == EAGAIN || code == EINTR else {
            throw Failure("\(name): \(String(cString: strerror(code)))")
        }
        return []
    }

    /// A line as a report; nil if libgps makes nothing of it.
    borrowing func unpack(_ line: [UInt8]) -> (report: GPSReport, device: String)? {
        guard GPSDLine.isWanted(line) else { return (.other, "") }
        var text = line.map { CChar(bitPattern: $0) } + [0]
        var raw = waypost_report()
        guard waypost_gps_unpack(data, &text, &raw) == 0 else { return nil }
        let device = withUnsafeBytes(of: raw.device) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        if raw.is_position != 0 { return (.position(Self.position(raw)), device) }
        if raw.is_sky != 0, raw.used >= 0 { return (.sky(used: Int(raw.used)), device) }
        return (.other, device)
    }

    private static func position(_ raw: waypost_report) -> GPSReport.Position {
        func finite(_ value: Double, _ range: ClosedRange<Double>) -> Double? {
            value.isFinite && range.contains(value) ? value : nil
        }
        var position = GPSReport.Position(mode: Int(raw.mode))
        if raw.seconds > 0, raw.seconds < 1 << 36 {
            let milliseconds = Int64(raw.seconds) * 1000 + Int64(raw.nanoseconds) / 1_000_000
            position.time = WallTime(milliseconds: milliseconds)
        }
        position.latitude = finite(raw.latitude, -90...90)
        position.longitude = finite(raw.longitude, -180...180)
        position.altitude = finite(raw.altitude, -1000...100_000)
        position.speed = finite(raw.speed, 0...10_000)
        position.course = finite(raw.track, 0...360)
        let axes = raw.epx.isFinite && raw.epy.isFinite ? hypot(raw.epx, raw.epy) : .nan
        position.horizontalAccuracy = finite(raw.eph.isFinite ? raw.eph : axes, 0...1_000_000)
        position.verticalAccuracy = finite(raw.epv, 0...1_000_000)
        return position
    }
}

/// A look at a line before libgps gets it.
enum GPSDLine {
    private static let wanted = ["TPV", "SKY"].map { Array("{\"class\":\"\($0)\"".utf8) }
    private static let classTag = Array("\"class\":".utf8)

    /// Only positions and skies are parsed: other classes would only be a way in for hostile bytes.
    static func isWanted(_ line: [UInt8]) -> Bool {
        line.last == UInt8(ascii: "}") && !line.contains(0)
            && wanted.contains { line.starts(with: $0) } && !hasSecondClass(line)
    }

    /// gpsd gives one class a line; with another behind a fault, gps_unpack of libgps 3.22 never returns.
    private static func hasSecondClass(_ line: [UInt8]) -> Bool {
        var rest = line.dropFirst(2)
        while let quote = rest.firstIndex(of: UInt8(ascii: "\"")) {
            rest = rest[quote...]
            if rest.starts(with: classTag) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}
