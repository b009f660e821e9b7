// Health: the state of the device at regular times, as `status` shows it.
package import Host
import JSON

/// The state of the device at one point in time (waypost-protocol(7), RECORDS).
package struct DeviceHealth: Sendable, Equatable {
    package var stamp: Stamp
    /// `healthy`, `degraded` or `critical`.
    package var state: String
    package var reasons: [String]
    package var version: String
    /// Seconds since the start of the gateway.
    package var uptime: Int
    package var freeBytes: Int64?
    package var databaseBytes: Int64?
    /// For how many tenths of a day there is room without an upload.
    package var roomTenths: Int64?
    /// nil while all sound is uploaded.
    package var held: HeldSound?
    /// Records pending upload, by the stream's name on the wire.
    package var pending: [String: Int] = [:]
    /// When the oldest pending record was captured, if that was in this boot.
    package var oldestPending: Stamp?
    /// When the oldest pending record was captured, if that was in an earlier boot.
    package var oldestPendingBefore: WallTime?
    /// Records lost in the last 24 hours, by the stream's name on the wire.
    package var lost: [String: Int] = [:]
    /// The state of each source.
    package var sources: [String: String] = [:]
    package var board = BoardReadings()
    package var nextSync: Stamp?

    package init(
        stamp: Stamp,
        state: String,
        reasons: [String],
        version: String,
        uptime: Int,
        freeBytes: Int64?,
        databaseBytes: Int64?
    ) {
        (self.stamp, self.state, self.reasons, self.version) = (stamp, state, reasons, version)
        (self.uptime, self.freeBytes, self.databaseBytes) = (uptime, freeBytes, databaseBytes)
    }
}

/// Sound that nobody has marked.
package struct HeldSound: Sendable, Equatable {
    package var chunks: Int
    package var bytes: Int
    /// When it was recorded; nil for none.
    package var from: WallTime?
    package var to: WallTime?

    package init(chunks: Int, bytes: Int, from: WallTime?, to: WallTime?) {
        (self.chunks, self.bytes, self.from, self.to) = (chunks, bytes, from, to)
    }

    fileprivate func write(to json: inout JSONWriter) {
        json.field("held", Int64(chunks))
        json.field("held_bytes", Int64(bytes))
        if let from { json.field("held_from", from) }
        if let to { json.field("held_to", to) }
    }
}

/// The hardware's own readings; nil for those that it does not report.
package struct BoardReadings: Sendable, Equatable {
    /// The temperature of the processor in tenths of a degree Celsius.
    package var cpuDecidegrees: Int64?
    /// Whether the supply voltage was too low.
    package var undervoltage: Bool?
    /// The load average of the last minute, in hundredths.
    package var loadHundredths: Int64?
    package var availableBytes: Int64?
    /// The signal level of the Wi-Fi network in dBm.
    package var wifiRSSI: Int64?

    package init() {}
}

extension Stream {
    package static let health = Stream(6, "health")
}

extension DeviceHealth: PlainRecord {
    package static let kind = StreamKind(
        .health,
        wire: "waypost_health",
        columns: [.members("report"), .moment("oldest_pending_at"), .moment("next_sync_at")],
        isAlwaysShown: false
    )

    package var values: [ColumnValue] {
        [.text(report), ColumnValue(oldestPending), ColumnValue(nextSync)]
    }

    /// Its members as a JSON object, except for times that are corrected with the clock.
    private var report: String {
        var json = JSONWriter()
        json.object {
            $0.field("state", state)
            $0.key("reasons")
            $0.array { array in for reason in reasons { array.value(reason) } }
            $0.field("version", version)
            $0.field("uptime_s", Int64(uptime))
            if let freeBytes { $0.field("free_bytes", freeBytes) }
            if let databaseBytes { $0.field("database_bytes", databaseBytes) }
            if let roomTenths { $0.field("room_days", scaled: roomTenths, decimals: 1) }
            held?.write(to: &$0)
            $0.field("pending", pending)
            if let time = oldestPendingBefore { $0.field("oldest_pending_at", time) }
            $0.field("lost_24h", lost)
            $0.key("sources")
            $0.object { object in
                for (name, state) in sources.sorted(by: { $0.key < $1.key }) {
                    object.field(name, state)
                }
            }
            board.write(to: &$0)
        }
        return String(decoding: json.bytes, as: UTF8.self)
    }
}

extension BoardReadings {
    fileprivate func write(to json: inout JSONWriter) {
        if let cpuDecidegrees {
            json.field("cpu_temperature_c", scaled: cpuDecidegrees, decimals: 1)
        }
        if let undervoltage { json.field("undervoltage", undervoltage) }
        if let loadHundredths { json.field("load_1m", scaled: loadHundredths, decimals: 2) }
        if let availableBytes { json.field("memory_available_bytes", availableBytes) }
        if let wifiRSSI { json.field("wifi_rssi_dbm", wifiRSSI) }
    }
}

extension ColumnValue {
    /// A point in time of the boot in which the record is stored.
    fileprivate init(_ stamp: Stamp?) {
        self = stamp.map { .moment(boot: nil, $0) } ?? .none
    }
}

extension JSONWriter {
    /// Writes an object of counts, its names in order.
    fileprivate mutating func field(_ key: String, _ counts: [String: Int]) {
        self.key(key)
        object { object in
            for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
                object.field(name, Int64(count))
            }
        }
    }
}
