// Where sound ended last, for the next start.
import Host
import Records

/// Where the last run that is over ended, as a memo: its segments may be gone, too quiet to be kept or purged.
enum SoundEnd {
    static let memo = "end of sound"

    static func text(_ end: Stamp, boot: String) -> String {
        "\(boot) \(end.boot.nanoseconds) \(end.wall.milliseconds)"
    }

    /// nil for one of another boot.
    static func stamp(_ text: String?, boot: String) -> Stamp? {
        let parts = (text ?? "").split(separator: " ")
        guard parts.count == 3, parts[0] == boot, let time = Int64(parts[1]),
            let wall = Int64(parts[2])
        else { return nil }
        return Stamp(boot: BootInstant(nanoseconds: time), wall: WallTime(milliseconds: wall))
    }
}

extension [Stamp] {
    /// nil where there is none.
    var latest: Stamp? { self.max { $0.boot < $1.boot } }
}
