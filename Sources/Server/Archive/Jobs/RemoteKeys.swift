// The names of the keys that waypost.toml(5) marks as remote.
import Configuration

/// The keys that a server may set, of gateways of this version.
///
/// The server links nothing of the gateway, so the list is repeated here; a test compares it with
/// the marks in the gateway's table of keys.
package enum RemoteKeys {
    package static let paths = [
        "schedule_offset",
        "upload.interval", "upload.max_batch_bytes", "upload.max_rate", "upload.daily_budget",
        "upload.quiet",
        "beacons.enabled", "beacons.scan_interval", "beacons.scan_window", "beacons.allow",
        "beacons.deny", "beacons.max_rate", "beacons.unknown", "beacons.schedule",
        "location.enabled", "location.interval", "location.min_distance",
        "audio.enabled", "audio.bitrate", "audio.min_level_db", "audio.schedule", "audio.duty",
        "audio.upload", "audio.mark_margin", "audio.fill_budget",
        "health.interval", "mqtt.interval", "log.level",
        "stream.*.max_rate", "stream.*.max_record_bytes", "stream.*.marks_audio",
    ]

    /// The check of a text of settings by its keys.
    static let names = KeyNames(
        paths,
        refusal: "cannot be set from a server, or is of a newer version; see waypost.toml(5)"
    )
}
