// Asks gpsd for its state, over a separate connection from the gateway's.
import CLinux
import Configuration
import Glibc
import Host
import JSON
import Setup

/// The state of gpsd and its GNSS receivers, as reported within a few seconds (gpsd_json(5)).
struct GPSDProbe {
    package struct Receiver: Decodable {
        var path: String?
        var driver: String?
    }

    private struct Line: Decodable {
        var `class`: String
        var release: String?
        var mode: Int?
        var path: String?
        var driver: String?
        var devices: [Receiver]?
    }

    private(set) var release: String?
    private(set) var receivers: [Receiver] = []
    /// The best mode of all position reports: 1 no fix, 2, 3; nil if none came.
    private(set) var mode: Int?

    /// Listens until there is a fix, or until `limit`.
    ///
    /// Throws if connecting fails.
    init(_ address: HostPort, limit: Duration, wantsFix: Bool = true) throws {
        let stop = try StopSignal()
        let clock = SystemClock()
        let deadline = clock.now() + limit
        let socket = try TCP.connect(
            host: address.host,
            port: address.port,
            timeout: .seconds(2),
            until: stop
        )
        let request = Array("?WATCH={\"enable\":true,\"json\":true};\n".utf8)
        _ = send(socket.number, request, request.count, Int32(MSG_NOSIGNAL))
        var lines = LineBuffer()
        while clock.now() < deadline, (mode ?? 0) < 2, wantsFix || receivers.isEmpty {
            var entries = [PollEntry(socket.number)]
            guard wait(for: &entries, timeout: deadline - clock.now()) > 0 else { break }
            var bytes = [UInt8](repeating: 0, count: 8192)
            let count = recv(socket.number, &bytes, bytes.count, 0)
            guard count > 0 else { break }
            lines.append(bytes.prefix(count))
            while case .whole(let line)? = lines.next(limit: .max) { receive(line) }
            // gpsd's lines are at most 10 kB: anything longer is not gpsd.
            guard lines.count < 32 << 10 else { break }
        }
    }

    private mutating func receive(_ bytes: [UInt8]) {
        guard let line = try? JSONInput.decode(Line.self, from: bytes) else { return }
        switch line.class {
        case "VERSION": release = line.release
        case "DEVICES":
            receivers = (line.devices ?? []).map {
                Receiver(path: $0.path.map(withoutUser), driver: $0.driver)
            }
        case "DEVICE":
            // gpsd reports the receiver's type only now, or the receiver was just plugged in.
            let path = line.path.map(withoutUser)
            receivers.removeAll { $0.path == path }
            receivers.append(Receiver(path: path, driver: line.driver))
        case "TPV": mode = max(mode ?? 0, line.mode ?? 0)
        default: break
        }
    }
}
