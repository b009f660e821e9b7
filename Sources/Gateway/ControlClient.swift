// The other end of the control socket, for the field commands.
internal import CLinux
internal import Glibc
internal import Host
internal import Queue
internal import Streams

/// A connection to the daemon.
package final class ControlClient {
    private let socket: Descriptor
    private var received: [UInt8] = []

    /// nil when no daemon answers at `path`.
    package init?(path: String) {
        let number = Glibc.socket(
            AF_UNIX,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue),
            0
        )
        guard number >= 0 else { return nil }
        socket = Descriptor(owning: number)
        let code = UnixSocket.withAddress(Array(path.utf8)) { connect(number, $0, $1) }
        guard code == 0 else { return nil }
    }

    package func send(_ command: ControlCommand) -> Bool { send(line: command.line) }

    /// Sends a line that has its end.
    func send(line: [UInt8]) -> Bool {
        Glibc.send(socket.number, line, line.count, Int32(MSG_NOSIGNAL)) == line.count
    }

    /// The next line; nil when the daemon is gone or nothing came in time.
    package func line(timeout: Duration) -> [UInt8]? {
        let deadline = SystemClock().now() + timeout
        while true {
            if let end = received.firstIndex(of: 10) {
                defer { received.removeSubrange(...end) }
                return Array(received[..<end])
            }
            var entries = [PollEntry(socket.number)]
            let left = deadline - SystemClock().now()
            guard left > .zero, wait(for: &entries, timeout: left) > 0 else { return nil }
            var bytes = [UInt8](repeating: 0, count: 16 << 10)
            let count = recv(socket.number, &bytes, bytes.count, 0)
            guard count > 0 else { return nil }
            received += bytes.prefix(count)
        }
    }
}

/// Where `status` comes from when the daemon is dead.
package enum Snapshot {
    static let fileName = "status.json"

    /// The newest report that the daemon left in one of its directories, marked as not running.
    package static func read(_ configuration: Configuration) -> StatusReport? {
        let paths = [configuration.runtimeDirectory, configuration.stateDirectory]
            .map { "\($0)/\(fileName)" }
        let newest = paths.filter { access($0, R_OK) == 0 }.max { modified($0) < modified($1) }
        guard let newest, let text = SmallText.read(newest),
            var report = StatusReport(json: Array(text.utf8))
        else { return nil }
        report.daemon.running = false
        for name in report.sources.keys { report.sources[name]?.state = "unknown" }
        (report.state, report.reasons) = HealthRules.judge(report)
        return report
    }

    /// A report that knows nothing but that no daemon runs: before the first start, or with its files gone.
    package static func nothing(_ configuration: Configuration, version: String) -> StatusReport {
        let source = StatusReport.Source(
            state: "unknown",
            records: 0,
            ratePerS: 0,
            dropped: 0,
            restarts: 0,
            device: "",
            detail: ""
        )
        let stream = StatusReport.StreamFigures(
            pending: 0,
            pendingBytes: 0,
            inFlight: 0,
            quarantined: 0,
            uploaded: 0
        )
        var report = StatusReport(
            version: version,
            deviceId: (try? DeviceID.kept(in: configuration.stateDirectory)) ?? "",
            state: .critical,
            reasons: [],
            daemon: .init(running: false, pid: 0, uptimeS: 0, rssBytes: 0, cpuS: 0),
            clock: .init(state: "unsynced", bootId: "", offsetS: 0),
            sources: Dictionary(
                uniqueKeysWithValues: SourceName.allCases.map { ($0.rawValue, source) }
            ),
            streams: Dictionary(
                uniqueKeysWithValues: StreamList().kinds.filter(\.isAlwaysShown)
                    .map { (configuration.wire(of: $0.stream), stream) }
            ),
            upload: .init(state: "unknown", bytesToday: 0),
            storage: .init(
                databaseBytes: FileSpace.size(
                    Gateway.databasePath(configuration.stateDirectory)
                ),
                freeBytes: FileSpace.free(configuration.stateDirectory),
                reusableBytes: 0,
                writtenBytes: 0,
                evictedRecords: 0,
                state: "ok"
            ),
            losses: [],
            recentErrors: []
        )
        (report.state, report.reasons) = HealthRules.judge(report)
        return report
    }

    /// Replaces the snapshot in one step, so that no reader sees half of it.
    static func write(_ json: [UInt8], to directory: String, as name: String = fileName) {
        let path = "\(directory)/\(name)"
        let temporary = path + ".new"
        guard let file = fopen(temporary, "w") else { return }
        let isWhole = fwrite(json, 1, json.count, file) == json.count
        fclose(file)
        chmod(temporary, 0o644)
        if isWhole { rename(temporary, path) } else { unlink(temporary) }
    }

    private static func modified(_ path: String) -> Int {
        var figures = stat()
        return stat(path, &figures) == 0 ? figures.st_mtim.tv_sec : 0
    }
}
