// Parts that the tests share: bytes from hex, HCI events, seeded noise, a collector, waiting.
import Foundation
import Host
import Queue
import Records
import StatusBoard
import SourceSupport
import Support
import Synchronization

@testable import Beacons

/// The bytes of a hex text; blanks are passed over.
func bytes(_ hex: String) -> [UInt8] {
    var digits = hex.filter { !$0.isWhitespace }[...]
    var bytes: [UInt8] = []
    while digits.count >= 2 {
        bytes.append(UInt8(digits.prefix(2), radix: 16) ?? 0)
        digits = digits.dropFirst(2)
    }
    return bytes
}

extension SeededRandom {
    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}

/// Advertising data as beacons send it.
enum Sample {
    static let uuid = "f7826da64fa24e988024bc5b71e0893e"
    static let iBeaconID = "f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/7"
    /// Flags, then an iBeacon with major 1, minor 7 and -59 dBm at 1 m.
    static let iBeacon = iBeacon(minor: 7)
    /// The published vector of Ruuvi with the address CB:B8:33:4C:88:4F.
    static let ruuvi =
        bytes("020106 1BFF9904 0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F")
    static let eddystoneUID =
        bytes("020106 0303AAFE 1716AAFE 00EE 00112233445566778899 AABBCCDDEEFF 0000")
    static let eddystoneTLM =
        bytes("020106 0303AAFE 1116AAFE 2000 0BB8 1580 00000102 00000E10")

    static func iBeacon(minor: UInt16) -> [UInt8] {
        bytes("020106 1AFF4C000215 \(uuid) 0001")
            + [UInt8(minor >> 8), UInt8(truncatingIfNeeded: minor), 0xC5]
    }
}

/// HCI events as a controller sends them, from the event code on.
enum Event {
    static func meta(_ subevent: UInt8, _ body: [UInt8]) -> [UInt8] {
        [0x3E, UInt8(body.count + 1), subevent] + body
    }

    static func address(_ value: UInt64) -> [UInt8] {
        (0..<6).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// One report of an LE Advertising Report.
    static func legacyReport(
        _ data: [UInt8],
        from address: UInt64 = 0xC0FF_EE00_0001,
        type: UInt8 = 1,
        rssi: Int8 = -60
    ) -> [UInt8] {
        [0, type] + Self.address(address) + [UInt8(data.count)] + data + [UInt8(bitPattern: rssi)]
    }

    /// One report of an LE Extended Advertising Report; `status` 1: more to come, 2: cut short.
    static func extendedReport(
        _ data: [UInt8],
        from address: UInt64 = 0xC0FF_EE00_0001,
        set: UInt8 = 1,
        status: UInt8 = 0,
        rssi: Int8 = -60
    ) -> [UInt8] {
        var report: [UInt8] = [status << 5, 0, 1]
        report += Self.address(address)
        report += [1, 1, set, 127, UInt8(bitPattern: rssi)]
        report += [UInt8](repeating: 0, count: 9)
        report.append(UInt8(data.count))
        return report + data
    }

    static func legacy(_ reports: [UInt8]...) -> [UInt8] {
        meta(0x02, [UInt8(reports.count)] + reports.flatMap { $0 })
    }

    static func extended(_ reports: [UInt8]...) -> [UInt8] {
        meta(0x0D, [UInt8(reports.count)] + reports.flatMap { $0 })
    }
}

/// An adapter on its own thread, stopped and joined by `stop`.
final class RunningAdapter: Sendable {
    /// The heartbeat of its thread.
    var life: Heartbeat { signal.life }
    let sink: RecordingSink
    let board = Publisher<SourceReport>()
    let adapter: BeaconAdapter
    private let signal: StopSignal
    private let finished = Flag()
    private let thread: Mutex<Slot>

    private struct Slot: ~Copyable { var thread: OwnThread? }

    private final class Flag: Sendable { let isSet = Atomic(false) }

    init(
        _ settings: BeaconSettings,
        clock: any HostClock = SystemClock(),
        sink: RecordingSink = RecordingSink(),
        radios: (@Sendable () -> any RadioSource)? = nil
    ) throws {
        let signal = try StopSignal()
        let adapter = try BeaconAdapter(
            settings: settings,
            sink: sink,
            board: board,
            clock: clock,
            radios: radios
        )
        self.sink = sink
        let finished = finished
        self.signal = signal
        self.adapter = adapter
        thread = Mutex(
            Slot(
                thread: try OwnThread("beacons") {
                    adapter.run(until: signal)
                    finished.isSet.store(true, ordering: .releasing)
                }
            )
        )
    }

    var isFinished: Bool { finished.isSet.load(ordering: .acquiring) }

    /// Asks it to stop and does not wait.
    func raise() { signal.raise() }

    func stop() {
        signal.raise()
        thread.withLock { $0.thread.take() }?.join()
    }
}

extension Publisher<SourceReport> {
    var failure: Failure? {
        if case .error(let failure, _) = state { return failure }
        return nil
    }

    var loadedDetail: String? {
        if case .loaded(let report) = state { return report.detail }
        return nil
    }
}

extension Telemetry {
    /// The readings by key, as scaled integers.
    var byKey: [String: Int64] {
        Dictionary(readings.map { ($0.quantity.key, $0.scaled) }, uniquingKeysWith: { $1 })
    }
}

/// A folder of its own, gone when the body ends.
func withTemporaryFolder<Value>(_ body: (String) throws -> Value) throws -> Value {
    let url = FileManager.default.temporaryDirectory
        .appendingPathComponent("waypost-beacons-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: url) }
    return try body(url.path)
}
