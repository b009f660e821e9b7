// The account of one source: when it was listening, and why it was not.
import Host
import Records

/// The recent time of one source as spans that tile it, the last one open; a pure value.
///
/// Changes of the source, stored audio and losses edit the spans. `seal` takes away those that
/// nothing can change any more; each becomes a record. Only the recent spans are in memory, so an
/// account is small however long it is kept.
struct EffortAccount: Sendable, Equatable {
    /// Losses are noted, and audio is stored, at most this long (ms) after the fact.
    static let settling: Int64 = 10_000
    /// The longest time (ms) from opening an audio device to its first sample, or back.
    static let slowestStart: Int64 = 10_000
    /// Jitter (ms) of the times of samples; a shorter gap in audio is not one.
    ///
    /// Between two runs, and within one, where the samples themselves show that none is missing.
    static let jitter: (between: Int64, within: Int64) = (20, 1000)
    /// The most spans in memory; the oldest of more become one unknown span.
    static let maximum = 256
    static let restarted = "the source was restarted"
    static let ended = "the gateway ended without notice"
    static let suspended = "the machine was suspended"

    /// Audio is recorded where segments are stored; other sources record while they listen.
    let isAudio: Bool
    private(set) var spans: [EffortSpan] = []
    /// When it began; nothing is known of the time before.
    private(set) var origin: EffortTime?
    /// Tells accounts apart that began without knowledge of each other; survives databases.
    private(set) var lineage = ""
    /// A UTC day, and the failures sealed on it.
    private(set) var day: Int64 = 0
    private(set) var failuresToday = 0
    /// The last audio is in another database, which may not be found again.
    private(set) var isElsewhere = false

    init(isAudio: Bool) { self.isAudio = isAudio }

    /// Restores an account from what `EffortBook.text` stored.
    init(
        isAudio: Bool,
        spans: [EffortSpan],
        origin: EffortTime?,
        lineage: String,
        day: Int64,
        failuresToday: Int
    ) {
        self.init(isAudio: isAudio)
        (self.spans, self.origin, self.lineage) = (spans, origin, lineage)
        (self.day, self.failuresToday) = (day, failuresToday)
    }

    // MARK: Events

    /// Notes a change of the source; `number` is the next number of its stream.
    ///
    /// Repetitions are ignored, and a start ends nothing but recording: whatever kept the source
    /// from recording lasts until it records.
    mutating func record(_ effort: SourceEffort, at time: EffortTime, number: Int64?) {
        var span = EffortSpan(from: time, state: .failed, number: number)
        switch effort {
        case .starting:
            guard spans.last?.isOn == true else { return }
            span.reason = Self.restarted
        case .listening: span.state = isAudio ? .listening : .recorded
        case .failed(let reason): span.reason = reason
        case .scheduledOff(let reason): (span.state, span.reason) = (.scheduledOff, reason)
        case .off(let reason): (span.state, span.reason) = (.off, reason)
        }
        guard let last = spans.last else {
            // The account begins when the source is first used.
            if span.state != .off {
                (spans, origin) = ([span], time)
                lineage = "\(time.boot):\(time.stamp.boot.nanoseconds)"
            }
            return
        }
        if last.state == span.state || last.isOn && span.isOn {
            if last.reason == Self.restarted { spans[spans.count - 1].reason = span.reason }
            return
        }
        append(span)
    }

    private mutating func append(_ span: EffortSpan) {
        var span = span
        // The end of a window may become known late: the process was stopped. Failures since then
        // do not count; audio that is stored does.
        while span.state == .scheduledOff, spans.count > 1, let last = spans.last,
            last.state == .failed
                || last.state == .listening && spans[spans.count - 2].state != .recorded,
            last.from.milliseconds(since: span.from).map({ $0 > 0 }) ?? false
        {
            spans.removeLast()
        }
        if let last = spans.last, !span.from.isAfter(last.from) {
            if last.state == .unknown || last.isOn && last.number ?? .max < span.number ?? 0 {
                // Another process, or one that has records, takes at least a millisecond.
                span.from = last.from.advanced(by: 1)
            } else {
                (span.from, span.number) = (last.from, last.number)
                spans.removeLast()
            }
        }
        spans.append(span)
        merge()
    }

    /// Notes audio that was stored.
    mutating func hear(from start: EffortTime, to end: EffortTime, isContinued: Bool, number: Int64)
    {
        var start = start
        if let from = spans.last(where: { !$0.from.isAfter(start) })?.from,
            start.milliseconds(since: from).map({ $0 < Self.jitter.between }) ?? false
        {
            start = from
        }
        if let last = spans.lastIndex(where: { $0.state == .recorded }), last + 1 < spans.count {
            let recorded = spans[last + 1].from
            let maximum = isContinued ? Self.jitter.within : Self.jitter.between
            if start.milliseconds(since: recorded).map({ $0 < maximum }) ?? false {
                start = recorded
            }
        }
        replace(start, end, where: { _ in true }, by: .recorded, "", number)
        isElsewhere = false
    }

    /// Notes records lost between two times, both included.
    ///
    /// Audio is lost where no segment is stored, which is known already: there a loss only names
    /// the cause.
    mutating func lose(from start: EffortTime, to end: EffortTime, _ cause: String, number: Int64) {
        // Where it ended in that millisecond, it had lost records before.
        let isLost: (EffortSpan) -> Bool =
            isAudio ? { $0.state == .listening } : { $0.isOn || $0.from == start }
        replace(start, end.advanced(by: 1), where: isLost, by: .failed, cause, number)
    }

    /// Notes that the machine was suspended between two times; what is stored stays recorded.
    mutating func sleep(from start: EffortTime, to end: EffortTime, number: Int64?) {
        let isLost: (EffortSpan) -> Bool = isAudio ? { $0.state == .listening } : { $0.isOn }
        replace(start, end, where: isLost, by: .off, Self.suspended, number)
    }

    /// Puts the time that another account knows before this one.
    ///
    /// Its open span ended with the last sign of life, unless it was off; then nobody knows. A sign
    /// of life of an earlier boot says nothing about it.
    mutating func follow(_ before: Self, end: EffortTime?) {
        var past = before
        if let last = past.spans.last, last.state != .off, last.state != .unknown {
            let isLater = end?.milliseconds(since: last.from).map { $0 > 0 } ?? false
            let end = isLater ? end ?? last.from : last.from
            past.append(EffortSpan(from: end, state: .unknown, reason: Self.ended))
        }
        for span in spans { past.append(span) }
        self = past
    }

    /// Begins where `before` began, whose intervals end at `origin`.
    mutating func isPreceded(by before: Self) {
        (origin, lineage) = (before.origin, before.lineage)
    }

    /// Handles another database: it counts records from its own start, and does not have the last audio.
    mutating func move() {
        for index in spans.indices { spans[index].number = nil }
        isElsewhere = true
    }

    // MARK: Editing

    private mutating func replace(
        _ start: EffortTime,
        _ end: EffortTime,
        where isReplaced: (EffortSpan) -> Bool,
        by state: EffortSpan.State,
        _ reason: String,
        _ number: Int64?
    ) {
        // The present boot is the last one: times of other boots are earlier.
        func isEarlier(_ time: EffortTime, _ other: EffortTime) -> Bool {
            other.milliseconds(since: time).map { $0 > 0 } ?? (time.boot != start.boot)
        }
        var result: [EffortSpan] = []
        for (index, span) in spans.enumerated() {
            let last = index + 1 < spans.count ? spans[index + 1].from : nil
            let from = isEarlier(span.from, start) ? start : span.from
            let to = last.map { isEarlier($0, end) ? $0 : end } ?? end
            guard isReplaced(span), isEarlier(from, to) else {
                result.append(span)
                continue
            }
            var own = EffortSpan(from: from, state: state, reason: reason, number: number)
            if isEarlier(span.from, from) {
                result.append(span)
            } else {
                (own.number, own.isCut) = (span.number, span.isCut)
            }
            result.append(own)
            guard last.map({ isEarlier(to, $0) }) ?? true else { continue }
            var rest = span
            (rest.from, rest.number, rest.isCut) = (to, number, false)
            result.append(rest)
        }
        spans = result
        merge()
    }

    /// Joins neighbours of one state; the first reason stays.
    private mutating func merge() {
        var result: [EffortSpan] = []
        for span in spans where span.isCut || span.state != result.last?.state {
            result.append(span)
        }
        if result.count > Self.maximum {
            let rest = Array(result.suffix(Self.maximum / 2))
            var lost = result[0]
            (lost.state, lost.reason) = (.unknown, "more changes than memory holds")
            result = [lost] + rest.drop { $0.state == .unknown }
        }
        invariant(result.count <= Self.maximum, "memory holds a bounded number of spans")
        invariant(result.tiles, "spans tile the time")
        spans = result
    }

    // MARK: Sealing

    /// Takes away and returns the intervals that are final, in order.
    ///
    /// `wall` returns a time in UTC, in ms; nil if the clock of its boot was never set. While that
    /// is so of this boot, intervals wait for ten minutes.
    mutating func seal(
        at now: EffortTime,
        number: Int64?,
        wall: (EffortTime) -> Int64?
    ) -> [SealedSpan] {
        if isAudio { settleListening() }
        joinFailures(at: now)
        cutAtMidnights(now, number, wall)
        let patience = wall(now) == nil ? 600_000 : Self.settling
        var sealed: [SealedSpan] = []
        while spans.count > 1, isFinal(at: now, after: patience) {
            if spans[0].state == .failed { count(wall(spans[1].from)) }
            sealed.append(takeFirst())
        }
        invariant(sealed.tiles, "intervals tile the time")
        invariant(
            sealed.last.map { $0.to == spans[0].from } ?? true,
            "the account goes on where its last interval ends"
        )
        return sealed
    }

    /// Ends the account and returns all that is not sealed yet.
    mutating func close(
        at end: EffortTime,
        wall: (EffortTime) -> Int64?
    ) -> [SealedSpan] {
        // A loss counts to the end of its millisecond.
        while let last = spans.last, !end.isAfter(last.from) { spans.removeLast() }
        spans.append(EffortSpan(from: end, state: .unknown, isCut: true))
        if isAudio { settleListening() }
        cutAtMidnights(end, nil, wall)
        var sealed: [SealedSpan] = []
        while spans.count > 1 { sealed.append(takeFirst()) }
        invariant(sealed.tiles, "intervals tile the time")
        return sealed
    }

    private mutating func takeFirst() -> SealedSpan {
        let (span, next) = (spans.removeFirst(), spans[0])
        invariant(
            span.from.milliseconds(since: next.from) ?? 0 <= 0,
            "an interval ends after it begins"
        )
        return SealedSpan(
            state: EffortState(rawValue: span.state.rawValue) ?? .unknown,
            reason: span.reason,
            from: span.from,
            to: next.from,
            records: span.number.flatMap { first in next.number.map { max(0, $0 - first) } }
        )
    }

    /// Whether nothing can change the first span any more.
    private func isFinal(at now: EffortTime, after patience: Int64) -> Bool {
        let next = spans[1]
        guard now.milliseconds(since: next.from) ?? .max >= patience else { return false }
        // Audio of the open run extends the last span that was recorded.
        if spans[0].state == .listening || next.state == .listening { return false }
        // A failure soon after this one is joined with it.
        let isGoing = spans.count == 2 || spans[2].state == .listening
        guard isGoing, spans[0].state == .failed, next.state == .recorded else { return true }
        return now.milliseconds(since: next.from) ?? .max >= pause
    }

    /// The shortest time (ms) between two failures that are separate intervals.
    ///
    /// The first 12 failures of a day are exact. From there on it grows, which bounds the records of
    /// a source that fails all day to about 200.
    private var pause: Int64 {
        let more = failuresToday - 12
        return more < 0 ? 0 : 60_000 << min(6, more / 12)
    }

    private mutating func count(_ wall: Int64?) {
        let today = wall.map(Self.day) ?? day
        if today != day { (day, failuresToday) = (today, 0) }
        failuresToday += 1
    }

    private mutating func joinFailures(at now: EffortTime) {
        guard pause > 0 else { return }
        var index = 0
        while index + 2 < spans.count {
            let length = spans[index + 2].from.milliseconds(since: spans[index + 1].from) ?? .max
            if spans[index].state == .failed, spans[index + 1].state == .recorded,
                spans[index + 2].state == .failed, length < pause
            {
                spans.removeSubrange(index + 1...index + 2)
            } else {
                index += 1
            }
        }
    }

    /// Decides what a closed span was in which the audio device was open and nothing is stored.
    ///
    /// The end of a run, and a start, belong to the pause before or after; anything else is lost.
    private mutating func settleListening() {
        var index = 0
        while index + 1 < spans.count {
            defer { index += 1 }
            guard spans[index].state == .listening else { continue }
            let (span, next) = (spans[index], spans[index + 1])
            let before = index > 0 ? spans[index - 1] : nil
            let length = next.from.milliseconds(since: span.from) ?? .max
            let isShort = length <= Self.slowestStart
            if before == nil, origin == span.from, next.state == .recorded {
                // The account begins with the first sample.
                origin = next.from
                spans.remove(at: index)
            } else if next.state == .failed || isShort && next.state != .recorded {
                spans[index + 1].from = span.from
                spans[index + 1].number = span.number
                spans.remove(at: index)
            } else if isShort, let before, before.state != .recorded {
                spans.remove(at: index)
            } else {
                (spans[index].state, spans[index].reason) = (.failed, "no audio was stored")
                continue
            }
            index -= 1
        }
        merge()
    }

    private mutating func cutAtMidnights(
        _ now: EffortTime,
        _ number: Int64?,
        _ wall: (EffortTime) -> Int64?
    ) {
        var index = 0
        while index < spans.count {
            defer { index += 1 }
            let (span, isLast) = (spans[index], index + 1 == spans.count)
            let end = isLast ? now : spans[index + 1].from
            // Nobody knows of a day whether it is in a span with an unknown end.
            guard let first = wall(span.from), let last = wall(end) else { continue }
            let late = last - (Self.day(of: first) + 1) * 86_400_000
            // Longer times off are not cut: one record says it.
            guard span.state != .listening, late > 0, late < 31 * 86_400_000 else { continue }
            var rest = span
            rest.from = end.advanced(by: -late)
            (rest.number, rest.isCut) = (isLast ? number : spans[index + 1].number, true)
            if rest.from.isAfter(span.from) { spans.insert(rest, at: index + 1) }
        }
    }

    private static func day(of wall: Int64) -> Int64 {
        WallTime(milliseconds: wall).utcDay
    }
}
