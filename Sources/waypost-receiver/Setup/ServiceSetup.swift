// The server's part of `setup`: its configuration and its service.
import Configuration
import Foundation
import Host

/// The configuration of the server that `setup` starts.
struct ServiceSetup {
    private let path: String
    private let loaded: Loaded<ReceiverSettings>

    var settings: ReceiverSettings { loaded.values }

    /// Throws ConfigurationErrors, or a `Failure` for a configuration without a page.
    init(config path: String) throws {
        self.path = path
        loaded = try ReceiverSettings.load(path)
        guard !BucketOptions.isBucket(loaded.values.data) else {
            throw Failure("\(path): data is a bucket, and such a server has no page and no codes")
        }
    }

    /// The address at which the proxy, and nobody else, reaches the server.
    var upstream: String {
        if ListenAddress(settings.listen)?.isLoopback == true { return settings.listen }
        return "127.0.0.1:" + (settings.listen.split(separator: ":").last ?? "8080")
    }

    /// Makes the server trust its proxy, and starts it.
    func start() throws {
        let isChanged = !settings.isBehindProxy || settings.listen != upstream
        // A client that reaches the server without the proxy could write any address into its header.
        if settings.listen != upstream { try set("listen", "\"\(upstream)\"") }
        if !settings.isBehindProxy { try set("behind_proxy", "true") }
        if let manager = SystemManager() {
            try manager.run("enable", "waypost-receiver")
            try manager.run(isChanged ? "restart" : "start", "waypost-receiver")
        } else if isChanged {
            print("restart the server: it has to know that it is behind a proxy")
        }
        try waitForServer()
    }

    /// Changes the line of a key, or adds one.
    private func set(_ key: String, _ value: String) throws {
        let loaded = try ReceiverSettings.load(path)
        let old = try SmallFile.read(path, limit: KeyTable<ReceiverSettings>.largestFile).bytes
        var lines = old.split(separator: 10, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        let line = "\(key) = \(value)"
        if case .file(_, let number) = loaded.origins[key] {
            lines[number - 1] = line
        } else {
            lines.insert(line, at: 0)
        }
        let new = Array(lines.joined(separator: "\n").utf8)
        let read = try? ReceiverSettings.table.read(new, file: path, environment: [:]) { _ in nil }
        let values = read.map { ReceiverSettings.table.shown($0) } ?? ""
        guard values.contains("\(line)  #") else {
            throw Failure("\(path): set \(line) there, then run setup again")
        }
        try SmallFile.replace(path, new, mode: 0o640, keepsOwner: true)
        print("\(path): \(line)")
    }

    private func waitForServer() throws {
        let deadline = Date(timeIntervalSinceNow: 15)
        while ListenAddress(upstream)?.isAnswered != true {
            guard Date() < deadline, SystemManager() != nil else {
                throw Failure(
                    "the server does not answer on \(upstream); start it, then run setup again: "
                        + "sudo systemctl restart waypost-receiver (its log: journalctl -u "
                        + "waypost-receiver), or waypost-receiver serve --config \(path)"
                )
            }
            usleep(100_000)
        }
        guard access("\(settings.data)/.receiver.sqlite", F_OK) == 0 else {
            throw Failure(
                "another program listens on \(upstream), or \(path) is not the configuration of the "
                    + "server there: \(settings.data) has no data of a server"
            )
        }
    }
}
