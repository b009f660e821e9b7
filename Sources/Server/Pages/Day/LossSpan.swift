// Time spans without data, from events and effort records.
import Host
import ServerBase
import ServerIndex

/// A time span without data, and why.
struct LossSpan {
    /// The reason, in the order in which spans are drawn; the name is its class in the style sheet.
    enum Kind: String, CaseIterable {
        /// The gateway or the source was stopped on purpose.
        case down
        case off
        case loss

        var title: String {
            switch self {
            case .loss: "lost, failed or unknown"
            case .off: "scheduled off"
            case .down: "off"
            }
        }

        /// Reads the state of a source as in the effort stream and in gap events.
        init(state: String?) {
            self = state == "off" ? .down : state == "scheduled_off" ? .off : .loss
        }
    }

    var kind = Kind.loss
    /// The stream or source that was affected; nil for all.
    var label: String?
    var words: String
    /// Milliseconds since 1970.
    var from: Int64
    var to: Int64

    /// Returns the spans that events report; a source not yet recovered is lost until `now`.
    static func spans(_ events: [EventRow], now: Int64) -> [LossSpan] {
        let ends = ends(of: events)
        return events.enumerated().compactMap { index, event in
            let detail = FlatRecord(event.detail)
            func time(_ name: String) -> Int64? {
                detail.text(name).flatMap { WallTime(rfc3339: $0) }?.milliseconds
            }
            switch event.kind {
            case "gap", "evicted":
                guard let from = time("from"), let to = time("to"), from <= to else { return nil }
                let cause = Kind(state: detail.text("state"))
                guard cause == .loss else {
                    let words = detail.text("reason") ?? cause.title
                    return LossSpan(
                        kind: cause,
                        label: event.source,
                        words: words,
                        from: from,
                        to: to
                    )
                }
                let count = detail.number("records").map { "\(Words.decimal($0, 0)) " } ?? ""
                let kind = detail.text("kind") ?? event.kind
                let label = detail.text("stream") ?? event.source
                return LossSpan(label: label, words: "\(count)lost (\(kind))", from: from, to: to)
            case "source_recovered":
                guard let from = time("since"), let to = time("until") else { return nil }
                return LossSpan(label: event.source, words: "source lost", from: from, to: to)
            case "source_lost":
                let from = time("since") ?? event.time
                return LossSpan(
                    label: event.source,
                    words: "source lost",
                    from: from,
                    to: max(from, ends[index] ?? now)
                )
            case "stopped":
                let words = "the gateway was stopped"
                let end = max(event.time, ends[index] ?? now)
                return LossSpan(kind: .down, words: words, from: event.time, to: end)
            default: return nil
            }
        }
    }

    /// Returns the end of each `source_lost` and `stopped` by index: the source's recovery (which has
    /// its own span) or the next start.
    ///
    /// `events`: in order of time. One pass, however many there are.
    private static func ends(of events: [EventRow]) -> [Int: Int64] {
        var ends: [Int: Int64] = [:]
        var started: Int64?
        var recovered: [String: Int64] = [:]
        for (index, event) in events.enumerated().reversed() {
            switch event.kind {
            case "started": started = event.time
            case "stopped": ends[index] = started
            case "source_recovered": recovered[event.source] = event.time
            case "source_lost":
                ends[index] = [started, recovered[event.source]].compactMap { $0 }.min()
            default: break
            }
        }
        return ends
    }
}

extension RecordLine {
    /// The time of an effort record in which sound was recorded; nil for any other.
    var recordedSound: Range<Int64>? {
        guard text("source") == "audio", text("state") == "recorded", let from = time("from"),
            let to = time("to"), from <= to, isDated
        else { return nil }
        return from..<to
    }
}

extension LossSpan {
    /// Returns the span of an effort record; nil if its source was recording, or nobody knows when.
    init?(effort line: RecordLine) {
        let states = ["failed", "scheduled_off", "off", "unknown"]
        guard let state = line.text("state"), states.contains(state),
            let source = line.text("source"), let from = line.time("from"),
            let to = line.time("to"), from <= to, line.isDated
        else { return nil }
        let kind = Kind(state: state)
        let words = line.text("reason") ?? kind.title
        self.init(kind: kind, label: source, words: words, from: from, to: to)
    }
}
