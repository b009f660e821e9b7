// The end of the last audio run, stored for the next start.
import Host
import Records

/// A memo of where the last finished run ended; its segments may be purged or were not stored.
enum AudioEnd {
    static let memo = "end of sound"

    static func text(_ end: Stamp, boot: String) -> String {
        "\(boot) \(end.boot.nanoseconds) \(end.wall.milliseconds)"
    }

    /// Parses the memo; nil if it is of another boot.
    static func stamp(_ text: String?, boot: String) -> Stamp? {
        let parts = (text ?? "").split(separator: " ")
        guard parts.count == 3, parts[0] == boot, let time = Int64(parts[1]),
            let wall = Int64(parts[2])
        else { return nil }
        return Stamp(boot: BootInstant(nanoseconds: time), wall: WallTime(milliseconds: wall))
    }
}

extension [Stamp] {
    /// The latest stamp; nil if empty.
    var latest: Stamp? { self.max { $0.boot < $1.boot } }
}
