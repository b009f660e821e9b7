// A worker process: started, listened to, ended with the bench.
import CLinux
import Glibc
import Host
import HTTP
import Queue
import Records
import Upload

/// Runs workers, and ends them when a signal ends the bench.
final class Workers {
    private let signals: Int32
    /// The bench's own end of the sink's standard input.
    private var sinkEnds: [Int32] = []

    init() throws {
        signals = waypost_take_signals()
        guard signals >= 0 else { throw SystemError("signalfd", code: -signals) }
    }

    /// Runs one side and gives its figures.
    ///
    /// Throws when the worker fails (it says why on standard error), and when a signal comes.
    func run(_ side: Side, _ task: SideTask) throws -> Figures {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw SystemError.last("pipe") }
        let output = Descriptor(owning: ends[0])
        let process: pid_t
        do {
            defer { close(ends[1]) }
            process = try start(side, task, output: ends[1], notFor: ends[0])
        }
        guard let text = read(output.number) else {
            kill(process, SIGKILL)
            waitpid(process, nil, 0)
            throw BenchFailure("ended by a signal")
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else { throw BenchFailure("the \(side) side failed (status \(status))") }
        return Figures(text: text)
    }

    /// Starts the server for uploads; it ends with its owner.
    ///
    /// `link`: the megabits a second that it takes, 0 for all.
    func sink(link: Int) throws -> Sink {
        var (ends, hold): ([Int32], [Int32]) = ([0, 0], [0, 0])
        guard pipe(&ends) == 0, pipe(&hold) == 0 else {
            throw SystemError.last("pipe")
        }
        let output = Descriptor(owning: ends[0])
        let holder = Descriptor(owning: hold[1])
        defer {
            close(ends[1])
            close(hold[0])
        }
        // Closed in every program that is started, or the sink would outlive the bench.
        sinkEnds = [hold[1]]
        let task = SideTask(database: "", rows: 0, rowsPerCommit: 0, link: link)
        let process = try start(.sink, task, input: hold[0], output: ends[1], notFor: ends[0])
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while line.last != UInt8(ascii: "\n") {
            guard Glibc.read(output.number, &byte, 1) == 1 else {
                throw BenchFailure("the server for uploads did not start")
            }
            line.append(byte)
        }
        let port = Int(Figures(text: String(decoding: line, as: UTF8.self))["port"] ?? 0)
        return Sink(port: port, process: process, holder: holder)
    }

    private func start(
        _ side: Side,
        _ task: SideTask,
        input: Int32? = nil,
        output: Int32,
        notFor other: Int32
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for end in sinkEnds + [other] { posix_spawn_file_actions_addclose(&actions, end) }
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_addclose(&actions, output)
        if let input { posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The bench blocks the signals it listens for; a worker takes them as usual.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let words = [
            "waypost-bench", "worker", side.rawValue, "--database", task.database, "--rows",
            "\(task.rows)", "--rows-per-commit", "\(task.rowsPerCommit)",
        ]
        var flags = task.isLive ? ["--live"] : []
        if task.stream == .audio { flags.append("--audio") }
        if task.link > 0 { flags += ["--link", "\(task.link)"] }
        if !task.endpoint.isEmpty {
            flags += ["--endpoint", task.endpoint, "--compression", task.compression.rawValue]
            flags += ["--max-batch-bytes", "\(task.maxBatchBytes)"]
        }
        var arguments = (words + flags).map { strdup($0) } + [nil]
        // From /proc, because C's `environ` is a variable that any thread may change.
        var environment =
            ProcessFile.text("/proc/self/environ").split(separator: "\0")
            .map { strdup(String($0)) } + [nil]
        defer { for text in arguments + environment { free(text) } }
        var process = pid_t()
        let code = posix_spawn(
            &process,
            "/proc/self/exe",
            &actions,
            &attributes,
            &arguments,
            &environment
        )
        guard code == 0 else { throw SystemError("posix_spawn", on: side.rawValue, code: code) }
        return process
    }

    /// All that comes until the worker ends; nil when a signal came first.
    private func read(_ output: Int32) -> String? {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 4096)
        while true {
            var entries = [PollEntry(output), PollEntry(signals)]
            _ = wait(for: &entries)
            if entries[1].isReady { return nil }
            guard entries[0].isReady else { continue }
            let count = Glibc.read(output, &block, block.count)
            if count == 0 { return String(decoding: bytes, as: UTF8.self) }
            if count > 0 { bytes += block.prefix(count) }
        }
    }
}

/// The server for uploads, as the bench holds it.
struct Sink: ~Copyable {
    let port: Int
    private let process: pid_t
    /// It serves until this is closed.
    private let holder: Descriptor

    init(port: Int, process: pid_t, holder: consuming Descriptor) {
        self.port = port
        self.process = process
        self.holder = holder
    }

    var endpoint: String { "http://127.0.0.1:\(port)/api/ingest" }

    deinit {
        kill(process, SIGTERM)
        waitpid(process, nil, 0)
    }
}
