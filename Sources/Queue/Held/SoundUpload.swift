// The selection of sound that is uploaded, and the spans of time that mark it.
import Host
package import Records
import SQLite

/// Selects the sound that is uploaded; the rest is held.
package struct SoundUpload: Sendable, Equatable {
    package var mode: AudioUpload
    /// The user's streams whose records mark sound.
    package var markingStreams: Set<String>
    /// How long before and after such a record sound is marked.
    package var margin: Duration

    package init(
        _ mode: AudioUpload = .all,
        markingStreams: Set<String> = [],
        margin: Duration = .seconds(15)
    ) {
        self.mode = mode
        self.markingStreams = markingStreams
        self.margin = margin
    }
}

/// A span of time whose sound is wanted.
struct SoundMark: Sendable, Equatable {
    /// The boot whose boot time the span is in; 0: it is in wall time.
    var boot: Int64
    /// First and last millisecond.
    var first: Int64
    var last: Int64
    /// A person asked for it: it is sent after what records have marked.
    var isOfPerson: Bool

    /// The span around a moment.
    init(_ moment: Int64, boot: Int64, margin: Duration) {
        (self.boot, isOfPerson) = (boot, false)
        first = moment &- margin.milliseconds
        last = moment &+ margin.milliseconds
    }

    /// A span of wall time that a person asked for.
    init(from: WallTime, to: WallTime) {
        (boot, isOfPerson) = (0, true)
        (first, last) = (from.milliseconds, to.milliseconds)
    }

    init(_ row: borrowing Statement) {
        (boot, first, last) = (row.required(0), row.required(1), row.required(2))
        isOfPerson = row.required(3) != 0
    }

    /// Whether it is of some of the same sound as another.
    func touches(_ other: Self) -> Bool {
        boot == other.boot && isOfPerson == other.isOfPerson && first <= other.last
            && other.first <= last
    }
}

/// When a chunk was recorded.
struct ChunkSpan {
    var id: Int64
    var boot: Int64
    var start: Stamp
    /// Its length in ms.
    var length: Int64

    /// Whether a mark wants some of it.
    ///
    /// Of wall times both that it saw and that it has now count: a program that dates records by a wrong clock
    /// means the same sound, and so does a person who saw the time before it was corrected.
    func isWanted(by mark: SoundMark, _ map: ClockMap) -> Bool {
        func overlaps(_ start: Int64) -> Bool {
            start <= mark.last && start &+ length > mark.first
        }
        if mark.boot != 0 { return mark.boot == boot && overlaps(start.boot.milliseconds) }
        return overlaps(start.wall.milliseconds)
            || overlaps(map.resolve(start, boot: boot).wall.milliseconds)
    }

    /// Whether it began after a mark, and so did every later chunk.
    func isAfter(_ mark: SoundMark, _ map: ClockMap) -> Bool {
        if mark.boot != 0 {
            return (mark.boot, mark.last) < (boot, start.boot.milliseconds)
        }
        // The first time that a boot learns may be put right within an hour (`ClockMap`).
        let (wall, quality) = map.resolve(start, boot: boot)
        return quality != .unsynced && mark.last < wall.milliseconds &- 3_600_000
    }
}
