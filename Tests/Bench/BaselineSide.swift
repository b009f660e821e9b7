// The C side: the plan of rows that the baseline inserts.
import CBaseline
import Host
import JSON
import Queue
import Records
import Upload

/// Owns the C structs of a plan and all they point to.
final class BaselinePlan {
    private var strings: [UnsafeMutablePointer<CChar>] = []
    private var payloads: [UnsafeMutablePointer<UInt8>] = []
    private let beacons: UnsafeMutableBufferPointer<waypost_baseline_beacon>
    private let rows: UnsafeMutableBufferPointer<waypost_baseline_row>
    private let warmUp = WarmUp()

    init(_ cycle: [Sighting]) {
        beacons = .allocate(capacity: Workload.beacons)
        rows = .allocate(capacity: cycle.count)
        for index in beacons.indices {
            beacons.initializeElement(at: index, to: beacon(cycle[index].identity))
        }
        for index in rows.indices {
            rows.initializeElement(at: index, to: row(cycle[index], beacon: index % beacons.count))
        }
    }

    deinit {
        for string in strings { string.deallocate() }
        for payload in payloads { payload.deallocate() }
        beacons.deallocate()
        rows.deallocate()
    }

    /// Good while this owner lives.
    func plan(_ task: SideTask, _ stopwatch: Stopwatch) -> waypost_baseline_plan {
        warmUp.stopwatch = stopwatch
        warmUp.rows = task.warmUp
        return waypost_baseline_plan(
            beacons: beacons.baseAddress,
            beacon_count: beacons.count,
            cycle: rows.baseAddress,
            cycle_count: rows.count,
            rows: Int64(task.rows),
            rows_per_commit: Int64(task.rowsPerCommit),
            boottime: Workload.start.boot.milliseconds,
            wall: Workload.start.wall.milliseconds,
            interval: Workload.interval.milliseconds,
            is_live: task.isLive ? 1 : 0,
            warmed_up: warmedUp,
            context: Unmanaged.passUnretained(warmUp).toOpaque(),
            warm_up: Int64(task.warmUp)
        )
    }

    private func beacon(_ identity: BeaconIdentity) -> waypost_baseline_beacon {
        waypost_baseline_beacon(
            id: copy(Array(identity.beaconID.utf8)),
            kind: Int64(identity.kind.rawValue),
            address: Int64(identity.address.value),
            address_type: Int64(identity.addressType.rawValue),
            tx_power: identity.txPower.map(Int64.init) ?? .min
        )
    }

    private func row(_ sighting: Sighting, beacon: Int) -> waypost_baseline_row {
        let packed = sighting.telemetry.packed
        var payload: UnsafeMutablePointer<UInt8>?
        if !packed.isEmpty {
            let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: packed.count)
            bytes.initialize(from: packed, count: packed.count)
            payloads.append(bytes)
            payload = bytes
        }
        return waypost_baseline_row(
            beacon: beacon,
            rssi: Int64(sighting.rssi ?? 0),
            payload: payload,
            payload_bytes: Int32(packed.count),
            json: copy(Self.json(sighting))
        )
    }

    /// The record's members that are neither time nor RSSI.
    private static func json(_ sighting: Sighting) -> [UInt8] {
        var json = JSONWriter()
        json.field("kind", sighting.identity.kind.name)
        json.field("beacon_id", sighting.identity.beaconID)
        json.field("address", sighting.identity.address.description)
        RecordJSON.write(sighting.identity.txPower, sighting.telemetry, [], to: &json)
        return json.bytes
    }

    private func copy(_ text: [UInt8]) -> UnsafePointer<CChar>? {
        let characters = text.map { CChar(bitPattern: $0) } + [0]
        let string = UnsafeMutablePointer<CChar>.allocate(capacity: characters.count)
        string.initialize(from: characters, count: characters.count)
        strings.append(string)
        return UnsafePointer(string)
    }
}

/// Receives C's callback after its warm-up.
private final class WarmUp {
    var stopwatch: Stopwatch?
    var rows = 0
}

/// A plain function, because C calls it.
private func warmedUp(_ context: UnsafeMutableRawPointer?) {
    guard let context else { return }
    let warmUp = Unmanaged<WarmUp>.fromOpaque(context).takeUnretainedValue()
    warmUp.stopwatch?.restart(rows: warmUp.rows)
}

enum BaselineSide {
    /// The rows as Waypost stores them.
    static func typed(_ task: SideTask) throws -> Figures {
        let owner = BaselinePlan(try Workload.sightings())
        let figures = try Figures.measure(rows: task.rows) { stopwatch in
            var plan = owner.plan(task, stopwatch)
            try withExtendedLifetime(owner) {
                try check(task) { waypost_baseline_typed(task.database, &plan, $0, $1) }
            }
        }
        try task.check()
        return figures
    }

    /// The records as JSON text.
    static func json(_ task: SideTask) throws -> Figures {
        let owner = BaselinePlan(try Workload.sightings())
        var bytes: Int64 = 0
        var figures = try Figures.measure(rows: task.rows) { stopwatch in
            var plan = owner.plan(task, stopwatch)
            try withExtendedLifetime(owner) {
                try check(task) { waypost_baseline_json(task.database, &plan, &bytes, $0, $1) }
            }
        }
        figures["record_bytes"] = Double(bytes) / Double(task.rows)
        try task.check()
        return figures
    }

    private static func check(
        _ task: SideTask,
        _ body: (UnsafeMutablePointer<CChar>?, Int) -> Int32
    ) throws {
        var error = [CChar](repeating: 0, count: 256)
        let code = error.withUnsafeMutableBufferPointer { body($0.baseAddress, $0.count) }
        guard code != 0 else { return }
        let words = error.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        throw BenchFailure(
            "\(task.database): C baseline: \(String(decoding: words, as: UTF8.self))"
        )
    }
}
