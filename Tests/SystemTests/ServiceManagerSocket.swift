// The service manager's end of sd_notify(3).
import Foundation
import Glibc
import Synchronization

/// Counts the heartbeats that a daemon sends.
final class ServiceManagerSocket: Sendable {
    private let socket: Int32
    private let count = Atomic(0)

    /// Variables for the daemon's environment.
    let environment: [String: String]

    /// `interval`: the watchdog interval, in systemd's format.
    init(folder: String, interval: Duration) throws {
        let path = folder + "/notify"
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let number = socket
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(number, $0, size) }
        }
        guard bound == 0 else { throw POSIXError(.EADDRNOTAVAIL) }
        environment = [
            "NOTIFY_SOCKET": path,
            "WATCHDOG_USEC": "\(interval.components.seconds * 1_000_000)",
        ]
        Thread.detachNewThread { [weak self] in
            var bytes = [UInt8](repeating: 0, count: 256)
            while case let length = recv(number, &bytes, bytes.count, 0), length > 0 {
                guard bytes.prefix(length).elementsEqual("WATCHDOG=1".utf8) else { continue }
                self?.count.wrappingAdd(1, ordering: .relaxed)
            }
            close(number)
        }
    }

    deinit {
        shutdown(socket, Int32(SHUT_RDWR))
    }

    var signsOfLife: Int { count.load(ordering: .relaxed) }
}
