// A real gpsd with a receiver at the other end of a serial line, to be fed, stopped, frozen and unplugged.
import Foundation
import Glibc
import Host
import Support

import Location

/// The kernel's clocks, both put forward on demand.
final class ShiftedClock: HostClock {
    private let shift = Locked(Duration.zero)

    func now() -> BootInstant { SystemClock().now() + shift.value }
    func wall() -> WallTime { SystemClock().wall() + shift.value }

    func advance(by duration: Duration) { shift.update { $0 += duration } }
}

final class GPSDaemon: Sendable {
    let port: UInt16
    private let control = NSTemporaryDirectory() + "gpsd-\(UUID().uuidString.prefix(8)).sock"
    private let process = Locked<Process?>(nil)
    /// The receiver's end of the line, and the name of gpsd's end.
    private let line = Locked<(receiver: Int32, path: String)?>(nil)

    /// Nothing runs yet; the port is fixed.
    init() throws {
        port = freePort()
    }

    deinit {
        kill()
        if let line = line.value { close(line.receiver) }
        unlink(control)
    }

    /// Starts gpsd, with the receiver if one is plugged in.
    func start() throws {
        let gpsd = Process()
        gpsd.executableURL = URL(fileURLWithPath: Tree.tool("gpsd"))
        gpsd.arguments = ["-N", "-F", control, "-S", "\(port)"]
        if let line = line.value { gpsd.arguments?.append(line.path) }
        gpsd.standardOutput = FileHandle.nullDevice
        gpsd.standardError = FileHandle.nullDevice
        try gpsd.run()
        process.update { $0 = gpsd }
    }

    func kill() {
        guard let gpsd = process.value else { return }
        process.update { $0 = nil }
        Glibc.kill(gpsd.processIdentifier, SIGKILL)
        gpsd.waitUntilExit()
    }

    func freeze() { signal(SIGSTOP) }
    func thaw() { signal(SIGCONT) }

    private func signal(_ number: Int32) {
        if let gpsd = process.value { Glibc.kill(gpsd.processIdentifier, number) }
    }

    private typealias OpenPTY =
        @convention(c) (
            UnsafeMutablePointer<Int32>, UnsafeMutablePointer<Int32>,
            UnsafeMutablePointer<CChar>, UnsafeRawPointer?, UnsafeRawPointer?
        ) -> Int32

    /// openpty(3), which Swift's Glibc module leaves out.
    private static let openpty = dlsym(nil, "openpty").map { unsafeBitCast($0, to: OpenPTY.self) }

    /// A receiver that gpsd learns of at its start, or, if it runs, from udev's helper.
    func plugIn() throws {
        var (number, other) = (Int32(-1), Int32(-1))
        var name = [CChar](repeating: 0, count: 64)
        guard let open = Self.openpty, open(&number, &other, &name, nil, nil) == 0 else {
            throw NeverHappened(what: "a serial line")
        }
        // gpsd sets the line up as it wants it; only then is there one who reads.
        close(other)
        let path = String(decoding: name.prefix { $0 != 0 }.map { UInt8($0) }, as: UTF8.self)
        // gpsd gives up root before it opens the receiver.
        chmod(path, 0o666)
        // A line that nobody reads must not hold up the receiver.
        _ = fcntl(number, F_SETFL, O_NONBLOCK)
        line.update { $0 = (number, path) }
        if process.value != nil { try report("add", path) }
    }

    func unplug() throws {
        guard let line = line.value else { return }
        self.line.update { $0 = nil }
        close(line.receiver)
        try report("remove", line.path)
    }

    private func report(_ action: String, _ path: String) throws {
        let gpsdctl = Process()
        gpsdctl.executableURL = URL(fileURLWithPath: Tree.tool("gpsdctl"))
        gpsdctl.arguments = [action, path]
        gpsdctl.environment = ["GPSD_SOCKET": control, "PATH": "/usr/sbin:/usr/bin:/bin"]
        gpsdctl.standardOutput = FileHandle.nullDevice
        gpsdctl.standardError = FileHandle.nullDevice
        try gpsdctl.run()
        gpsdctl.waitUntilExit()
    }

    /// Writes the GNSS receiver's bytes; returns false when the line is full.
    @discardableResult
    func feed(_ bytes: [UInt8]) -> Bool { put(bytes[...]) == bytes.count }

    /// As `feed`, but nothing is lost where gpsd is slow: a line that is full is waited for.
    func feedAll(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        try waitUntil("gpsd has read what the receiver says") {
            rest = rest.dropFirst(put(rest))
            return rest.isEmpty
        }
    }

    /// How many of the bytes the line took.
    private func put(_ bytes: ArraySlice<UInt8>) -> Int {
        guard let line = line.value else { return 0 }
        var entries = [PollEntry(line.receiver, PollEntry.writable)]
        guard wait(for: &entries, timeout: .milliseconds(100)) > 0 else { return 0 }
        return max(0, bytes.withUnsafeBytes { write(line.receiver, $0.baseAddress, $0.count) })
    }

    /// A second of a receiver that stands still with a 3D fix at `time`.
    func feedFix(at time: WallTime) {
        let text = time.rfc3339
        func digits(_ start: Int, _ count: Int) -> Substring {
            text.dropFirst(start).prefix(count)
        }
        let clock = "\(digits(11, 2))\(digits(14, 2))\(digits(17, 2)).\(digits(20, 2))"
        let date = "\(digits(8, 2))\(digits(5, 2))\(digits(2, 2))"
        let place = "4627.6180,N,00650.5800,E"
        for body in [
            "GPRMC,\(clock),A,\(place),0.10,12.00,\(date),,,A",
            "GPGGA,\(clock),\(place),1,09,0.9,377.0,M,47.6,M,,",
            "GPGSA,A,3,04,05,09,12,16,20,24,25,29,,,,1.6,0.9,1.3",
        ] {
            let sum = body.utf8.reduce(UInt8(0), ^)
            let hex = String(sum, radix: 16, uppercase: true)
            feed(Array("$\(body)*\(hex.count < 2 ? "0" : "")\(hex)\r\n".utf8))
        }
    }
}

/// A port that never answers: its queue of connections is full.
final class BlackHole {
    let port: UInt16
    private var sockets: [Int32] = []

    init() throws {
        let (listener, port) = listening(backlog: 0)
        self.port = port
        sockets = [listener]
        for _ in 0..<4 {
            let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let number = socket(AF_INET, kind, 0)
            sockets.append(number)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
    }

    deinit {
        for number in sockets { close(number) }
    }
}
