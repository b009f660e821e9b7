// The effort records of one device against what its world knows: when was it listening?
internal import Queue
internal import Records
internal import SimulatedDisk
internal import SQLite

/// The effort intervals that a device stored, read from its tables without the gateway's code.
///
/// A value, so that copies and rollbacks of a device are easy.
struct EffortAudit {
    /// A point in time: the boot's index in `Truth.boots`, and its boot time in ms.
    struct Time: Comparable, CustomStringConvertible {
        var boot: Int
        var boottime: Int64

        static func < (left: Self, right: Self) -> Bool {
            (left.boot, left.boottime) < (right.boot, right.boottime)
        }

        var next: Self { Self(boot: boot, boottime: boottime + 1) }

        var description: String { "\(boot):\(boottime)" }
    }

    struct Interval {
        var state: String
        var from: Time
        var to: Time
        /// Its id, as `key` makes it.
        var key: String
        var storedAt: Time
    }

    /// Losses that a source noted.
    var noted: [(stream: Int, time: Time)] = []
    /// The device's past was changed, or its disk said that it stored what it did not.
    var isVoid = false
    /// Uploaded records were deleted: a process that was killed may have left none.
    var isPurged = false
    private(set) var intervals: [String: [Interval]] = [:]
    /// The rows read so far, by their keys.
    private var known: Set<String> = []
    /// The quarantined databases read so far.
    var older: Set<String> = []

    /// The number of intervals of all sources.
    var count: Int { known.count }

    /// Reads the new rows below `end`.
    mutating func read(
        _ database: borrowing Connection,
        _ truth: Truth,
        before end: Int64 = .max
    ) throws {
        let rows = try database.prepare(
            """
            SELECT e.id, (SELECT hex(seed) FROM id_seeds WHERE stream=\(Stream.effort.number)
            AND first<=e.id ORDER BY first DESC LIMIT 1), e.source, e.state, f.boot_id, e.from_boottime, t.boot_id,
            e.to_boottime, o.boot_id, e.boottime FROM effort e LEFT JOIN boots f ON f.id=e.from_boot
            LEFT JOIN boots t ON t.id=e.to_boot LEFT JOIN boots o ON o.id=e.boot
            WHERE e.id<\(end) ORDER BY e.id
            """
        )
        while try rows.step() {
            let key = Self.key(seed: rows.text(1), row: rows.required(0))
            guard known.insert(key).inserted else { continue }
            let names = [4, 6, 8].map { rows.text($0) }
            let boots = names.compactMap { name in truth.boots.firstIndex { $0.name == name } }
            guard boots.count == 3 else {
                throw Violation("effort", "an interval of a boot that nobody knows")
            }
            let interval = Interval(
                state: rows.text(3),
                from: Time(boot: boots[0], boottime: rows.required(5)),
                to: Time(boot: boots[1], boottime: rows.required(7)),
                key: key,
                storedAt: Time(boot: boots[2], boottime: rows.required(9))
            )
            append(interval, of: rows.text(2))
        }
    }

    /// Returns what a record's id and its row have in common: random bits, and the row's number.
    private static func key(seed: String, row: Int64) -> String {
        "\(seed.prefix(12).lowercased()) \(row)"
    }

    static func key(_ id: String) -> String {
        let digits = id.filter { $0 != "-" }
        return key(seed: digits, row: Int64(digits.suffix(10), radix: 16) ?? 0)
    }

    /// On its own, because Debian's Swift 6.0.3 crashes on this beside a borrowed connection.
    private mutating func append(_ interval: Interval, of source: String) {
        intervals[source, default: []].append(interval)
    }

    /// Checks that the intervals of each source tile the time since its first one.
    mutating func checkTiles() throws {
        for source in intervals.keys.sorted() {
            let all = (intervals[source] ?? []).sorted { ($0.from, $0.to) < ($1.from, $1.to) }
            intervals[source] = all
            for (left, right) in zip(all, all.dropFirst()) where left.to != right.from {
                throw Violation("effort", "\(source): \(left), and then \(right)")
            }
            if let empty = all.first(where: { $0.from >= $0.to }) {
                throw Violation("effort", "\(source): \(empty) is empty or negative")
            }
        }
    }

    /// The intervals of all sources.
    var all: [Interval] { intervals.keys.sorted().flatMap { intervals[$0] ?? [] } }

    /// Returns the interval of a point in time; nil after the last one and in a hole.
    func interval(_ source: String, at time: Time) -> Interval? {
        guard let all = intervals[source] else { return nil }
        var (low, high) = (0, all.count)
        while low < high {
            let middle = (low + high) / 2
            if all[middle].to > time { high = middle } else { low = middle + 1 }
        }
        return low < all.count && all[low].from <= time ? all[low] : nil
    }

    func text(_ source: String) -> String {
        (intervals[source] ?? []).map { " \($0.state) \($0.from)..\($0.to)" }.joined(separator: ";")
    }

    func start(_ source: String) -> Time? { intervals[source]?.first?.from }

    func end(_ source: String) -> Time? { intervals[source]?.last?.to }
}

extension World {
    /// The sources that the simulation drives.
    private static let sources: [Stream] = [.beacons, .location]

    /// Notes what a source does, in histories with effort.
    func record(_ effort: SourceEffort, _ stream: Stream, _ device: Device) {
        if plan.keepsEffort { device.queue?.record(effort, of: stream) }
    }

    /// Notes that the sources which need no other step listen, or end.
    func recordAll(_ effort: SourceEffort, _ device: Device) {
        for stream in Self.sources { record(effort, stream, device) }
        if case .off = effort { record(effort, .audio, device) }
    }

    /// Reads the intervals that a device stored since; they are deleted only long after.
    func readEffort(_ device: Device) throws {
        guard plan.keepsEffort, let queue = device.queue, !device.disk.isOff,
            !device.account.isDamaged,
            device.effortSeen != [Int64(queue.generation), queue.newest(.effort)]
        else { return }
        readOlderEffort(device)
        let truth = truth
        var effort = device.effort
        do {
            try view.look(at: device.disk) { try effort.read($0.connection, truth) }
        } catch is SQLiteError {
            return
        }
        device.effort.update(effort)
        device.effortSeen = [Int64(queue.generation), queue.newest(.effort)]
    }

    /// Reads the intervals that only a quarantined database has.
    private func readOlderEffort(_ device: Device) {
        for path in Presence.olderPaths(device.disk)
        where device.effort.older.insert(path).inserted {
            let copy = device.disk.copy(seed: 1)
            guard let database = try? OpenDatabase(path, on: copy) else { continue }
            let end = Mark(of: path, copy)?.next[Stream.effort.name]
            try? device.effort.read(database.connection, truth, before: end ?? .max)
        }
    }

    /// Checks the whole account of a device after the final phase.
    ///
    /// Not after damage: if bytes of a database are missing, its accounts may be too, or be older
    /// than the intervals that were stored from them.
    func checkEffort(_ device: Device) throws {
        let account = device.account
        guard plan.keepsEffort, let queue = device.queue, !device.effort.isVoid,
            !account.isDamaged, !account.hasFailedSync, let losses = try? queue.losses(),
            !losses.contains(where: { $0.stream == .effort })
        else { return }
        try readEffort(device)
        try device.effort.checkTiles()
        for interval in device.effort.all {
            guard let dates = server.effort[interval.key] else { continue }
            do {
                // A copy does not know what its original learned since.
                try dates.check(interval, truth, knowsAll: devices.count == 1)
            } catch {
                throw Violation("effort", "\(error): \(interval) has \(dates)")
            }
        }
        // A copy lost what was in the memory of its original.
        guard devices.count == 1 else { return }
        for stream in Self.sources { try checkRecords(stream, device, losses) }
        try checkSegments(device)
        for (stream, time) in device.effort.noted {
            let name = StreamList()[number: stream]?.stream.name ?? ""
            let interval = device.effort.interval(name, at: time)
            let isEdge = interval?.from == time || interval?.to == time.next
            if interval?.state == "recorded", !isEdge {
                throw Violation(
                    "effort",
                    "\(name): \(time) is recorded, and a loss was noted" + device.effort.text(name)
                )
            }
        }
    }

    /// Checks that what arrived was captured while its source listened, and that what is lost was
    /// not.
    private func checkRecords(
        _ stream: Stream,
        _ device: Device,
        _ losses: [LossEntry]
    ) throws {
        // Those in quarantine are not lost.
        let here = Presence(device.disk, streams: StreamList.builtIn)
        // Records that were removed were recorded first.
        let isRemoved = losses.contains { $0.stream == stream && $0.kind.isOfRemoval }
        for serial in device.account.taken[stream.number] ?? [] {
            let known = truth.records[serial]
            let time = EffortAudit.Time(boot: known.boot, boottime: known.boottime)
            let interval = device.effort.interval(stream.name, at: time)
            let state = interval?.state
            let isHere = here.records.contains(serial) || server.serials.contains(serial)
            // In the millisecond in which an interval begins or ends, both may be.
            let isEdge = interval?.from == time || interval?.to == time.next
            let isUnproved = state == "unknown" && device.effort.isPurged
            let fits =
                isHere
                ? ["recorded", "failed", nil].contains(state) || isEdge || isUnproved
                : state != "recorded" || isRemoved || isEdge
            guard fits else {
                let words = "\(stream) \(serial) at \(time), \(isHere ? "arrived" : "lost"): "
                throw Violation(
                    "effort",
                    words + "\(state ?? "no interval")" + device.effort.text(stream.name)
                )
            }
            let isLate = device.effort.end(stream.name).map { time >= $0 } ?? true
            // The account begins with the first start of which anything reached the disk.
            let isEarly = !isHere && device.effort.start(stream.name).map { time < $0 } ?? true
            guard state != nil || isLate || isEarly else {
                throw Violation(
                    "effort",
                    "\(stream) \(serial) at \(time) is in no interval"
                        + device.effort.text(stream.name)
                )
            }
        }
    }

    /// Checks that audio is recorded where it arrived, from its first to its last sample.
    private func checkSegments(_ device: Device) throws {
        for serial in device.account.segments where server.segments.contains(serial) {
            let segment = truth.segments[serial]
            for moment in [20, 1979] as [Int64] {
                let time = EffortAudit.Time(
                    boot: segment.boot,
                    boottime: segment.boottime + moment
                )
                let state = device.effort.interval(Stream.audio.name, at: time)?.state
                guard ["recorded", nil].contains(state) else {
                    throw Violation(
                        "effort",
                        "audio \(serial) at \(time) arrived: \(state ?? "")"
                    )
                }
            }
        }
    }
}

extension EffortAudit {
    /// Takes what `other`, a copy of it, has read.
    fileprivate mutating func update(_ other: Self) {
        (intervals, known) = (other.intervals, other.known)
    }
}

/// The dates of an effort record on the wire.
struct EffortDates {
    struct Wrong: Error, CustomStringConvertible {
        var description: String
    }

    var from: Int64
    var to: Int64
    /// Its `clock` vouches for them.
    var isDated: Bool

    /// Checks that what they say of an interval is true, as far as its device could know it.
    func check(_ interval: EffortAudit.Interval, _ truth: Truth, knowsAll: Bool) throws(Wrong) {
        guard from <= to else { throw Wrong(description: "it ends before it begins") }
        if interval.from.boot == interval.to.boot {
            let length = interval.to.boottime - interval.from.boottime
            guard abs(to - from - length) <= ClockMap.tolerance(length) else {
                throw Wrong(description: "it is \(length) ms long by the boot clock")
            }
        }
        let ends = [interval.from, interval.to]
        let isKnown =
            knowsAll && ends.allSatisfy { truth.isDated($0.boot, before: interval.storedAt) }
        guard isDated else {
            guard isKnown else { return }
            throw Wrong(description: "both ends were known when it was stored")
        }
        let right = ends.map { truth.boots[$0.boot].origin + $0.boottime }
        let bounds = ends.compactMap { truth.bound($0.boot, $0.boottime) }
        guard bounds.count == 2, abs(from - right[0]) <= bounds[0], abs(to - right[1]) <= bounds[1]
        else { throw Wrong(description: "its right dates are \(right), allowed \(bounds)") }
        guard isKnown, to - from < 31 * 86_400_000, bounds.allSatisfy({ $0 < 60_000 }) else {
            return
        }
        let days = [right[0] + bounds[0], right[1] - bounds[1]].map { $0 / 86_400_000 }
        guard days[0] >= days[1] else { throw Wrong(description: "it goes over midnight") }
    }
}
