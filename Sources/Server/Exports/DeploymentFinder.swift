// Finds the deployments of a device in its records.
import Host
import ServerBase
import ServerIndex

/// Reads all records of a device once, and finds where its deployments begin and end.
struct DeploymentFinder {
    private let records: DeviceRecords
    private let scope: ExportScope
    /// True: records whose time is not certain count as well.
    private let countsUndated: Bool
    private var first: Int64?
    private var last: Int64?
    /// When each way of recording began, in order.
    private var settings: [(time: Int64, text: String)] = []
    /// When its schedule became another one.
    private var schedules: [Int64] = []
    private var hours: [HourPlace] = []
    /// When recordings were made whose date is not certain.
    private var unsynced: [Int64] = []

    /// Returns the deployments in order; none if the device has no audio in the range.
    ///
    /// Throws `UnknownPlaceError` if nothing says where it was.
    static func deployments(
        of records: DeviceRecords,
        _ effort: [EffortInterval],
        _ scope: ExportScope
    )
        throws -> [Deployment]
    {
        // A device whose clock was never set has no better times than the undated ones.
        for countsUndated in [false, true] {
            var finder = Self(records, scope, countsUndated: countsUndated)
            try finder.readDays()
            let audio = effort.filter { $0.source == "audio" }
            for interval in audio where interval.isDeployed {
                finder.extend(interval.from, interval.to)
            }
            guard finder.first != nil else { continue }
            finder.schedules = ScheduleChanges.times(audio)
            return try finder.deployments()
        }
        return []
    }

    /// An error: no position of a device is known.
    struct UnknownPlaceError: Error {
        var device: String
    }

    private init(_ records: DeviceRecords, _ scope: ExportScope, countsUndated: Bool) {
        (self.records, self.scope, self.countsUndated) = (records, scope, countsUndated)
    }

    private mutating func extend(_ from: Int64, _ to: Int64) {
        let from = max(from, scope.since?.milliseconds ?? from)
        let to = min(to, scope.until?.milliseconds ?? to)
        guard from <= to else { return }
        first = min(first ?? from, from)
        last = max(last ?? to, to)
    }

    private mutating func readDays() throws {
        for date in records.dates where scope.mayInclude(date: date) {
            for sound in try records.sounds(on: date, scope) { add(sound) }
            var detected: [Int64] = []
            try records.forEach(.detections, on: { $0 == date }) { record, _ in
                guard let time = record.identity?.time, scope.includes(time),
                    countsUndated || record.isDated
                else { return }
                detected.append(time)
            }
            if let from = detected.min(), let to = detected.max() { extend(from, to) }
            if scope.positions[records.device] == nil { try readPlaces(on: date) }
        }
    }

    private mutating func add(_ sound: ArchivedAudio) {
        if sound.clock == "unsynced" { unsynced.append(sound.chunk.start) }
        guard countsUndated || sound.isDated else { return }
        extend(sound.chunk.start, sound.chunk.end)
        let text = "\(sound.rate.map { "\($0) Hz " } ?? "")\(sound.type)"
        if settings.last?.text != text { settings.append((sound.chunk.start, text)) }
    }

    private mutating func readPlaces(on date: String) throws {
        var fixes: [(fix: Track.Fix, accuracy: Double?)] = []
        try records.forEach(.positions, on: { $0 == date }) { record, _ in
            guard let fix = Track.fix(record), scope.includes(fix.time) else { return }
            fixes.append((fix, record.number("horizontal_accuracy")))
        }
        hours += HourPlace.hours(fixes)
    }

    // MARK: Deployments

    private func deployments() throws -> [Deployment] {
        guard let first, let last else { return [] }
        let given = scope.positions[records.device]
        guard given != nil || !hours.isEmpty else {
            throw UnknownPlaceError(device: records.device)
        }
        let starts = Set(
            [first]
                + (moves() + schedules + settings.dropFirst().map(\.time)).filter {
                    first < $0 && $0 < last
                }
        )
        .sorted()
        return zip(starts, starts.dropFirst() + [last]).map { start, end in
            invariant(start <= end, "a deployment ends after its start")
            let places = self.places(from: start, to: end)
            let accuracies = places.compactMap(\.accuracy).sorted()
            let accuracy = accuracies.isEmpty ? nil : accuracies[accuracies.count / 2]
            let median = HourPlace.median(places.map(\.place))
            return Deployment(
                device: records.device,
                start: start,
                end: end,
                isLast: end == last,
                place: given ?? median ?? SitePlace(latitude: 0, longitude: 0),
                uncertainty: given == nil ? accuracy.flatMap(Self.metres) : nil,
                settings: settings.last { $0.time <= start }?.text ?? settings.first?.text ?? "",
                hasClockIssue: unsynced.contains {
                    (start <= $0 || start == first) && ($0 < end || end == last)
                }
            )
        }
    }

    private static func metres(_ accuracy: Double) -> Int? {
        (0...1e7).contains(accuracy) ? max(1, Int(accuracy.rounded(.up))) : nil
    }

    /// Returns when the device was moved.
    private func moves() -> [Int64] {
        var moves: [Int64] = []
        var anchor = hours.first
        for hour in hours {
            guard let at = anchor, hour.isMoved(from: at) else { continue }
            anchor = hour
            moves.append(hour.start)
        }
        return moves
    }

    /// Returns the hours between two times, else the last one before them, else the first one.
    private func places(from start: Int64, to end: Int64) -> [HourPlace] {
        let within = hours.filter { start <= $0.start && $0.start < end }
        guard within.isEmpty else { return within }
        return (hours.last { $0.start < start } ?? hours.first).map { [$0] } ?? []
    }
}
