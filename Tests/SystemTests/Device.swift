// A gateway for one test: a folder, a configuration, and the real programs.
import Foundation
import Support
import Testing

/// One device; its processes are killed at its end.
class Device {
    private let temporary: TemporaryFolder
    var folder: String { temporary.path }
    var config: String { folder + "/waypost.toml" }
    /// The gateway that was started last.
    private(set) var daemon: Process?
    /// Other programs that are killed with it.
    var children: [Process] = []
    /// Variables for the gateway, in addition to the tests' environment.
    var environment: [String: String] = [:]

    /// Parameters as for `configure`.
    init(_ tables: String = "", in temporary: TemporaryFolder = TemporaryFolder()) throws {
        self.temporary = temporary
        try configure(tables)
    }

    deinit {
        for process in children + [daemon].compactMap({ $0 }) { process.killAndWait() }
    }

    /// `tables`: the configuration; sources not named in it are off, and without `[upload]` no
    /// server is needed.
    func configure(_ tables: String) throws {
        var text = """
            state_directory = "\(folder)/state"
            runtime_directory = "\(folder)/run"
            \(tables)

            """
        for source in ["beacons", "location", "audio"] where !text.contains("[\(source)]") {
            text += "[\(source)]\nenabled = false\n"
        }
        if !text.contains("[upload]") { text += "[upload]\nrequired = false\n" }
        try write(text, "waypost.toml")
    }

    func write(_ text: String, _ name: String, mode: Int = 0o644) throws {
        let path = folder + "/" + name
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    // MARK: The gateway

    /// Starts the gateway and does not wait.
    func launch(_ arguments: [String] = [], log: Any = FileHandle.nullDevice) throws {
        daemon = try .started(
            Tree.program("waypost"),
            ["run", "--config", config] + arguments,
            error: log,
            environment: environment
        )
    }

    /// Starts the gateway, and returns once it answers.
    func start() throws {
        try launch()
        try waitUntil("the daemon") {
            guard isRunning else { throw NeverHappened(what: "a daemon that runs") }
            return try run("status", "--json").status != 2
        }
    }

    var isRunning: Bool { daemon?.isRunning == true }

    func signal(_ number: Int32) { if let daemon { kill(daemon.processIdentifier, number) } }

    /// Stops the gateway; returns the exit status.
    func stop() throws -> Int32 {
        signal(SIGTERM)
        try waitUntil("its end") { !isRunning }
        return daemon?.terminationStatus ?? -1
    }

    /// Kills it, like a power cut.
    func killDaemon() {
        daemon?.killAndWait()
        daemon = nil
    }

    // MARK: Commands

    func run(_ arguments: String..., input: String = "") throws -> Outcome {
        try Process.run(
            Tree.program("waypost"),
            arguments + ["--config", config],
            input: input
        )
    }

    /// Starts a command and does not wait for it.
    func begin(_ arguments: String..., error: Any = FileHandle.nullDevice) throws -> Process {
        let process = try Process.started(
            Tree.program("waypost"),
            arguments + ["--config", config],
            error: error
        )
        children.append(process)
        return process
    }

    /// `status --json`; empty if it prints nothing.
    func status() throws -> [String: Any] {
        let text = try run("status", "--json").output
        let object = try? JSONSerialization.jsonObject(with: Data(text.utf8))
        return object as? [String: Any] ?? [:]
    }

    /// The status of a source, such as `location`.
    func source(_ name: String) throws -> [String: Any] {
        (try status()["sources"] as? [String: [String: Any]])?[name] ?? [:]
    }

    /// The status of a stream, by its wire name.
    func stream(_ name: String) throws -> [String: Any] {
        (try status()["streams"] as? [String: [String: Any]])?[name] ?? [:]
    }

    /// The lines that the server has stored of a stream.
    func arrived(_ wire: String) throws -> [String] {
        guard let names = FileManager.default.enumerator(atPath: folder + "/data") else {
            return []
        }
        return try names.compactMap { $0 as? String }
            .filter { $0.hasPrefix("stream=\(wire)/") && $0.hasSuffix(".ndjson") }
            .flatMap { name in
                try String(contentsOfFile: "\(folder)/data/\(name)", encoding: .utf8)
                    .split(separator: "\n").map(String.init)
            }
    }

    /// The lines of /proc/net/tcp and tcp6 with sockets on which the gateway listens (proc(5)).
    func openPorts() throws -> [String] {
        guard let daemon else { throw NeverHappened(what: "a daemon") }
        let folder = "/proc/\(daemon.processIdentifier)"
        let files = FileManager.default
        let own = Set(
            try files.contentsOfDirectory(atPath: folder + "/fd").compactMap {
                try? files.destinationOfSymbolicLink(atPath: "\(folder)/fd/\($0)")
            }
        )
        return try ["tcp", "tcp6"].flatMap { name in
            try String(contentsOfFile: "\(folder)/net/\(name)", encoding: .utf8)
                .split(separator: "\n").map(String.init)
                .filter { line in
                    let words = line.split(separator: " ")
                    guard words.count > 9, words[3] == "0A" else { return false }
                    return own.contains("socket:[\(words[9])]")
                }
        }
    }

    // MARK: Surroundings

    /// Starts the reference server, which accepts the token `demo-token`; returns its endpoint.
    ///
    /// The file `token` holds that token.
    func startReceiver(tokens: String = "demo-token") throws -> String {
        try write(tokens + "\n", "tokens")
        let output = Pipe()
        children.append(
            try .started(
                Tree.program("waypost-receiver"),
                ["--listen", "127.0.0.1:0", "--data", folder + "/data"]
                    + ["--tokens", folder + "/tokens"],
                output: output
            )
        )
        let port = try output.number(after: "http://127.0.0.1:")
        return "http://127.0.0.1:\(port)/api/ingest"
    }

    /// Waits until the server lists a device: a batch is in its files before it is committed.
    func waitForServer(toKnow id: String) throws {
        try waitUntil("\(id) at the server") {
            let arguments = ["devices", "--data", folder + "/data"]
            return try Process.run(Tree.program("waypost-receiver"), arguments)
                .output.contains("\(id) ")
        }
    }

    /// The path of a library for LD_PRELOAD.
    func library(_ source: String, to name: String) throws -> String {
        let library = folder + "/" + name
        let arguments = ["cc", "-shared", "-fPIC", "-O1", "-o", library, source]
        let compiler = try Process.run("/usr/bin/env", arguments + ["-ldl", "-lpthread"])
        try #require(compiler.status == 0, "\(compiler.error)")
        return library
    }
}

extension Pipe {
    /// Waits for `mark` in the output; returns the digits after it.
    func number(after mark: String) throws -> String {
        var text = ""
        while case let data = fileHandleForReading.availableData, !data.isEmpty {
            text += String(decoding: data, as: UTF8.self)
            let rest = text.components(separatedBy: mark).dropFirst().first ?? ""
            if rest.contains(where: { !$0.isNumber }) {
                return String(rest.prefix { $0.isNumber })
            }
        }
        throw NeverHappened(what: "a start")
    }
}
