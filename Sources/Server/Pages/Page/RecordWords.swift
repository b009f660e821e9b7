// Words for the names and values of records.
import ServerBase

/// Words for people; the names on the wire stay in files, the read API and tooltips.
enum RecordWords {
    private static let names = [
        "average_db_level": "level", "load_1m": "load", "wifi_rssi_dbm": "Wi-Fi",
        "beacon_id": "beacon", "cpu_temperature_c": "processor",
        "lost_24h": "lost in 24 h", "next_sync_at": "next sync", "overlap_duration": "overlap",
        "oldest_pending_at": "oldest waiting", "pending": "waiting", "rssi": "signal strength",
        "tx_power": "signal at 1 m", "uptime_s": "running for",
    ]
    private static let values = [
        "altbeacon": "AltBeacon", "bthome": "BTHome", "eddystone_eid": "Eddystone EID",
        "eddystone_tlm": "Eddystone TLM", "eddystone_uid": "Eddystone UID",
        "eddystone_url": "Eddystone URL", "ibeacon": "iBeacon", "ruuvi": "Ruuvi",
        "random_static": "random, static", "random_resolvable": "random, resolvable",
        "random_non_resolvable": "random, not resolvable", "2d": "2D", "3d": "3D",
    ]
    /// The members whose values have words.
    private static let coded: Set<String> = ["kind", "address_type", "fix"]

    /// Returns words for a member, and the unit of a number: `telemetry.temperature_c`, in `°C`.
    static func split(_ name: String, isNumber: Bool) -> (words: String, unit: String) {
        let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
        guard parts.count == 2 else {
            let (words, unit) = isNumber ? Quantities.split(name) : (name.asWords, "")
            return (names[name] ?? words, unit)
        }
        if ["telemetry", "detail"].contains(parts[0]) {
            return split(parts[1], isNumber: isNumber)
        }
        let (words, unit) = split(parts[1], isNumber: isNumber)
        let stream = StreamTitle.ofLoss(parts[1])
        return (
            "\(split(parts[0], isNumber: false).words): \(stream == parts[1] ? words : stream)",
            unit
        )
    }

    /// Returns words for the value of a member.
    static func of(_ value: String, in name: String) -> String {
        (coded.contains(name) ? values[value] : nil) ?? value
    }
}
