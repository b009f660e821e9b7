// The titles of streams and sources on the page.

/// Titles for people; the names on the wire stay in files, addresses and tooltips.
enum StreamTitle {
    private static let streams = [
        "linux_gpsd_location": "Position", "linux_alsa_audio": "Sound",
        "linux_bluez_beacons": "Beacons", "waypost_events": "Events", "waypost_health": "Health",
        "waypost_surveys": "Surveys", "waypost_effort": "Effort", "waypost_replies": "Replies",
    ]
    private static let sources = ["location": "Position", "audio": "Sound", "beacons": "Beacons"]

    /// Returns the title of a stream; a user's stream keeps its name.
    static func of(_ stream: String) -> String { streams[stream] ?? stream }

    /// Returns the title of what a loss affected: a stream, or a source of the gateway.
    static func ofLoss(_ label: String) -> String { sources[label] ?? of(label) }

    /// Returns a heading for a kind of data: `Beacons`, `Readings (Health)`, `Sound (mic-2)`.
    static func heading(_ kind: String, _ stream: String) -> String {
        let title = of(stream)
        return title == kind ? kind : "\(kind) (\(title))"
    }
}
