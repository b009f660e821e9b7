// Resource usage of a process: time, CPU, bytes written, memory.
import Glibc
import Host
import JSON
import Synchronization

/// The kernel's figures for this process at one moment.
struct Usage {
    /// Seconds on CLOCK_MONOTONIC.
    let wall: Double
    /// Seconds of user and system time, all threads (getrusage(2)).
    let cpu: Double
    /// Bytes that went to the block layer (proc(5), `write_bytes`); 0 on tmpfs and the like.
    let blockBytes: Double
    /// Bytes given to write(2) and its kin (`wchar`).
    let writtenBytes: Double
    /// Times a thread had gone to sleep and was woken (`ru_nvcsw`).
    let wakeUps: Double

    static func now() -> Usage {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let micros =
            (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000
            + Int(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        let io = ProcessFile.fields("/proc/self/io")
        return Usage(
            wall: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9,
            cpu: Double(micros) / 1e6,
            blockBytes: io["write_bytes"] ?? 0,
            writtenBytes: io["wchar"] ?? 0,
            wakeUps: Double(usage.ru_nvcsw)
        )
    }
}

/// Resident memory of this process in bytes.
enum Resident {
    static var current: Double { (ProcessFile.fields("/proc/self/status")["VmRSS"] ?? 0) * 1024 }

    /// The highest since the start or the last `forgetPeak`.
    static var peak: Double { (ProcessFile.fields("/proc/self/status")["VmHWM"] ?? 0) * 1024 }

    /// The peak begins again at what is resident now (proc(5), `clear_refs`).
    static func forgetPeak() {
        guard let file = fopen("/proc/self/clear_refs", "w") else { return }
        fputs("5", file)
        fclose(file)
    }
}

/// Counts the bytes that the disk below a folder was asked to write, by any process.
struct DiskCounter {
    private let device: DeviceNumber

    /// nil where the folder is on no disk.
    init?(folder: String) {
        guard let device = DeviceNumber(of: folder) else { return nil }
        guard SystemFiles().writtenBytes(device.block) != nil else { return nil }
        self.device = device
    }

    /// Bytes since the boot, with all that waited to be written.
    func written() -> Double {
        sync()
        return Double(SystemFiles().writtenBytes(device.block) ?? 0)
    }
}

/// Small files of /proc and /sys.
enum ProcessFile {
    /// The first 64 kB; empty where it cannot be read.
    static func text(_ path: String) -> String {
        SmallText.read(path, limit: 64 << 10) ?? ""
    }

    /// The number after each `name:`.
    static func fields(_ path: String) -> [String: Double] {
        var fields: [String: Double] = [:]
        for line in text(path).split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2,
                let word = parts[1].split(whereSeparator: { $0 == " " || $0 == "\t" }).first
            else { continue }
            fields[String(parts[0])] = Double(word)
        }
        return fields
    }
}

/// Figures by name, as a worker gives them to the bench.
struct Figures {
    private(set) var values: [String: Double] = [:]

    subscript(name: String) -> Double? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// A line a figure.
    var text: String {
        values.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
    }

    /// An object of them.
    func write(to json: inout JSONWriter) {
        json.object { object in
            for (name, value) in values.sorted(by: { $0.key < $1.key }) {
                object.field(name, value)
            }
        }
    }

    init() {}

    init(text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2 { values[String(words[0])] = Double(words[1]) }
        }
    }

    /// Each figure's median over several runs.
    init(medianOf runs: [Figures]) {
        for name in Set(runs.flatMap(\.values.keys)) {
            let sorted = runs.compactMap { $0[name] }.sorted()
            let upper = sorted[sorted.count / 2]
            let lower = sorted[(sorted.count - 1) / 2]
            values[name] = (lower + upper) / 2
        }
    }

    /// Returns the usage of `work` per row, from the stopwatch's start on.
    static func measure(rows: Int, _ work: (Stopwatch) throws -> Void) rethrows -> Figures {
        Resident.forgetPeak()
        let stopwatch = Stopwatch()
        try work(stopwatch)
        let after = Usage.now()
        let (before, done) = stopwatch.start
        let rows = Double(max(1, rows - done))
        var figures = Figures()
        figures["resident_end_bytes"] = Resident.current
        figures["resident_peak_bytes"] = Resident.peak
        figures["rows_per_s"] = rows / max(after.wall - before.wall, 1e-9)
        figures["cpu_us_per_row"] = (after.cpu - before.cpu) * 1e6 / rows
        figures["block_bytes_per_row"] = (after.blockBytes - before.blockBytes) / rows
        figures["wchar_per_row"] = (after.writtenBytes - before.writtenBytes) / rows
        figures["wake_ups_per_row"] = (after.wakeUps - before.wakeUps) / rows
        return figures
    }
}

/// When measuring begins: at once, or when a side says that it has warmed up.
final class Stopwatch: Sendable {
    private let begun = Mutex((usage: Usage.now(), rows: 0))

    var start: (usage: Usage, rows: Int) { begun.withLock { $0 } }

    /// Begins again; `rows` are done.
    func restart(rows: Int) { begun.withLock { $0 = (Usage.now(), rows) } }
}
