// How long a server keeps records.
import Host
import ServerBase

/// The number of days for which the records of each stream are kept.
package struct Retention: Sendable, Equatable {
    /// For streams that are not named; nil keeps them for ever.
    package var days: Int?
    package var streams: [String: Int] = [:]

    package init(days: Int? = nil) { self.days = days }

    package var isEmpty: Bool { days == nil && streams.isEmpty }

    /// Returns the first day of a stream that is kept, such as `2026-08-28`; nil keeps all.
    ///
    /// A day is over at its midnight (UTC), so its last record is kept for the whole time.
    func firstDay(of stream: String, at now: WallTime) -> String? {
        guard let days = streams[stream] ?? days else { return nil }
        let oldest = now.milliseconds - Int64(days) * Day.milliseconds
        return Day(of: oldest).name
    }
}
