// Watches for changes that let a failed upload succeed: a new network, a new token file.
import CLinux
import Glibc
import Host
import Status

/// A netlink socket on which the kernel reports interfaces and addresses.
final class NetworkSocket {
    private let socket: Descriptor
    private var state: NetworkState?

    var descriptor: Int32 { socket.number }

    /// Opens the socket in the network namespace of the calling thread.
    init(_ life: Heartbeat) throws {
        let number = waypost_network_events()
        guard number >= 0 else { throw SystemError("socket", on: "netlink", code: -number) }
        socket = Descriptor(owning: number)
        state = life.during("getifaddrs") { .current() }
    }

    /// Discards all pending messages; returns true if something has changed.
    ///
    /// A message may repeat what is known, so it is only a reason to look.
    func readNews(_ life: Heartbeat) -> Bool {
        let before = state
        var bytes = [UInt8](repeating: 0, count: 32 << 10)
        // -ENOBUFS: the kernel dropped messages, so assume a change.
        var wasDropped = false
        while case let count = waypost_receive_from_kernel(socket.number, &bytes, bytes.count),
            count >= 0 || count == -Int(ENOBUFS)
        {
            wasDropped = wasDropped || count < 0
        }
        state = life.during("getifaddrs") { .current() } ?? before
        return wasDropped || state != before
    }
}

/// An inotify watch on a file's folder, because a replaced file is a new one under the same name.
final class FolderWatch {
    private let watch: Descriptor

    var descriptor: Int32 { watch.number }

    /// Returns nil if there is no such folder or it cannot be watched.
    init?(of path: String) {
        let number = waypost_watch_folder(folder(ofPath: path))
        guard number >= 0 else { return nil }
        watch = Descriptor(owning: number)
    }

    /// Discards all pending events.
    func clear() {
        var bytes = [UInt8](repeating: 0, count: 4096)
        while read(watch.number, &bytes, bytes.count) > 0 {}
    }
}

/// Watches the network and the token file, on the thread that calls `run`.
struct Connectivity: Sendable {
    /// How long to wait for more events: replacing a file causes several.
    private static let settling = Duration.milliseconds(200)

    /// The file that holds the token; nil for none.
    var tokenFile: String?
    /// Reads the token.
    var token: @Sendable () throws -> String
    var clock: any HostClock
    var onNetwork: @Sendable () -> Void
    var onToken: @Sendable () -> Void
    var log: Log?

    /// Blocks until `stop` is raised.
    ///
    /// If something cannot be watched, uploads still notice: they are tried once per interval.
    func run(until stop: StopSignal) {
        var network: NetworkSocket?
        do { network = try NetworkSocket(stop.life) } catch {
            log?.warning("network changes cannot be watched", ["why": "\(error)"])
        }
        let folder = tokenFile.flatMap { FolderWatch(of: $0) }
        func read() -> String? { stop.life.during("read of the token") { try? token() } }
        var known = read()
        var change = Debounce()
        while !stop.isRaised {
            var entries = [
                PollEntry(stop.descriptor), PollEntry(network?.descriptor ?? -1),
                PollEntry(folder?.descriptor ?? -1),
            ]
            _ = stop.wait(for: &entries, timeout: change.due.map { delay(until: $0) })
            if entries[1].isReady, network?.readNews(stop.life) == true {
                change.changed(at: clock.now().milliseconds)
            }
            if change.isOver(at: clock.now().milliseconds) { onNetwork() }
            guard entries[2].isReady, !stop.sleep(for: Self.settling) else { continue }
            folder?.clear()
            // A file that is missing or half written is read again at its next event.
            guard let token = read(), token != known else { continue }
            known = token
            onToken()
        }
    }

    private func delay(until due: Int64) -> Duration {
        .milliseconds(max(0, due - clock.now().milliseconds))
    }
}
