// The connection to gpsd; libgps decodes its lines.
import CGPSD
import Glibc
import Host

/// A connection to gpsd; owns the socket and libgps's data.
///
/// libgps only decodes lines: its `gps_open` blocks for minutes on a host that does not answer.
struct GPSDConnection: ~Copyable {
    private static let request = Array("?WATCH={\"enable\":true,\"json\":true};\n".utf8)

    private let socket: Descriptor
    private let data: UnsafeMutablePointer<gps_data_t>
    private let name: String
    /// This gpsd's `alt` is above mean sea level.
    private var altIsMSL = false
    /// Positions from lines that libgps could not parse to the end.
    private(set) var damaged = 0

    /// Connects and asks for reports, in bounded time.
    ///
    /// - Throws: A `Failure` with a remedy.
    init(host: String, port: UInt16, until stop: StopSignal) throws {
        let name = "gpsd at \(host):\(port)"
        let socket: Descriptor
        do {
            socket = try TCP.connect(host: host, port: port, until: stop)
        } catch {
            let refusal = error as? ConnectError
            let isOfName = refusal?.isOfName ?? false
            let advice =
                isOfName
                ? "check the network and location.gpsd"
                : "is it running? `systemctl status gpsd.socket`"
            throw Failure("\(name): \(refusal?.reason ?? "\(error)"); \(advice)")
        }
        guard Self.watch(socket.number) else {
            throw Failure("\(name): it did not accept the WATCH request")
        }
        // Properties are set last: a throw after that would run deinit without a connection.
        let data = UnsafeMutablePointer<gps_data_t>.allocate(capacity: 1)
        data.initialize(to: gps_data_t())
        self.name = name
        self.socket = socket
        self.data = data
    }

    deinit {
        data.deallocate()
    }

    var descriptor: Int32 { socket.number }

    /// Asks gpsd to report (again).
    borrowing func watch() -> Bool { Self.watch(descriptor) }

    private static func watch(_ number: Int32) -> Bool {
        send(number, request, request.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            == request.count
    }

    /// Returns the bytes that have arrived, if any; does not block.
    ///
    /// Throws when gpsd has closed the connection.
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

    /// Decodes a line; nil for a TPV that cannot be read.
    mutating func unpack(_ raw: [UInt8]) -> (report: GPSReport, device: String)? {
        let line = GPSDLine.normalized(raw, altIsMSL: altIsMSL)
        if let altIsMSL = GPSDLine.altIsMSL(line) { self.altIsMSL = altIsMSL }
        if let receivers = GPSDLine.receivers(line) { return (receivers, "") }
        if let sky = GPSDLine.sky(line) { return sky }
        guard GPSDLine.isPosition(line) else { return (.other, "") }
        guard GPSDLine.isReadable(line) else { return nil }
        var text = line.map { CChar(bitPattern: $0) } + [0]
        var report = waypost_report()
        guard waypost_gps_unpack(data, &text, &report) == 0 else { return nil }
        if report.fault != 0 { damaged += 1 }
        let device = withUnsafeBytes(of: report.device) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        return (.position(Self.position(report)), device)
    }

    private static func position(_ raw: waypost_report) -> GPSReport.Position {
        func finite(_ value: Double, _ range: ClosedRange<Double>) -> Double? {
            value.isFinite && range.contains(value) ? value : nil
        }
        // An out-of-range mode counts as unknown, so that it cannot mask valid reports of its
        // epoch.
        var position = GPSReport.Position(mode: (0...3).contains(raw.mode) ? Int(raw.mode) : 0)
        // Dead reckoning goes on without satellites.
        if raw.status == 5 { position.mode = min(position.mode, 2) }
        position.isSimulated = raw.status == 8
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
