package import Host
package import Records
import Support

/// A record sink that keeps what a source gives it.
package final class RecordingSink: RecordSink {
    package struct Content: Sendable {
        package var sightings: [Sighting] = []
        package var fixes: [Fix] = []
        package var runs: [AudioRun] = []
        package var segments: [Segment] = []
        package var refused: [Segment] = []
        /// The runs that have ended.
        package var ended: [Int64] = []
        package var events: [Event] = []
        /// Losses without an event.
        package var losses: [Loss] = []
        package var warnings: [String] = []
        /// The GNSS receiver's times.
        package var times: [Stamp] = []
        package var settled = 0
    }

    private let content = Locked(Content())
    private let recent: [Sighting]
    private let lastEnd: Stamp?
    package let stoppedAt: Stamp?
    package let soundTap: AudioTap?
    private let missed: [DueTime]
    private let presentWindow = Locked(RecordingWindow())
    private let room: @Sendable () -> Bool
    private let admitsSighting: @Sendable (Sighting) -> Bool
    private let admitsSegment: @Sendable (Segment) -> Bool

    /// Keeps the records for which `sighting` and `segment` return true.
    package init(
        recent: [Sighting] = [],
        endOfAudio: Stamp? = nil,
        stoppedAt: Stamp? = nil,
        tap: AudioTap? = nil,
        missed: [DueTime] = [],
        hasRoom: @escaping @Sendable () -> Bool = { true },
        sighting: @escaping @Sendable (Sighting) -> Bool = { _ in true },
        segment: @escaping @Sendable (Segment) -> Bool = { _ in true }
    ) {
        self.recent = recent
        lastEnd = endOfAudio
        (self.stoppedAt, self.missed, soundTap) = (stoppedAt, missed, tap)
        room = hasRoom
        admitsSighting = sighting
        admitsSegment = segment
    }

    package var all: Content { content.value }
    package var sightings: [Sighting] { all.sightings }
    package var fixes: [Fix] { all.fixes }
    package var times: [Stamp] { all.times }
    /// The number of times of a receiver that had run for long.
    package var settled: Int { all.settled }

    package func accept(_ sighting: Sighting) -> Bool {
        guard admitsSighting(sighting) else { return false }
        content.update { $0.sightings.append(sighting) }
        return true
    }

    package func accept(_ fix: Fix) -> Bool {
        content.update { $0.fixes.append(fix) }
        return true
    }

    package func accept(_ segment: Segment) -> Bool {
        let isAdmitted = admitsSegment(segment)
        content.update { content in
            if isAdmitted {
                content.segments.append(segment)
            } else {
                content.refused.append(segment)
            }
        }
        return isAdmitted
    }

    package func accept(_ event: Event) { content.update { $0.events.append(event) } }
    package func record(_ loss: Loss) { content.update { $0.losses.append(loss) } }
    package func warn(_ message: String) { content.update { $0.warnings.append(message) } }
    package var hasRoom: Bool { room() }
    package func recentReadings() -> [Sighting] { recent }
    package func record(place fix: Fix) {}
    package func record(time stamp: Stamp, isSettled: Bool) {
        content.update { content in
            content.times.append(stamp)
            content.settled += isSettled ? 1 : 0
        }
    }
    package func newRunID() -> Int64 { Int64(all.runs.count + 1) }
    package func begin(_ run: AudioRun) { content.update { $0.runs.append(run) } }
    package func end(run: Int64) { content.update { $0.ended.append(run) } }
    package var soundRefusal: Failure? { nil }
    package func endOfAudio() -> Stamp? { lastEnd }
    package func missedAudio() -> [DueTime] { missed }
    package var window: RecordingWindow {
        get { presentWindow.value }
        set { presentWindow.update { $0 = newValue } }
    }
}
