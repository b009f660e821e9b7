// The dates of a record on the wire, and what may become of them when it is sent again.
internal import Host

/// When a record happened and, in the detail of an event, the span of time that it is about.
///
/// A retry has the same bytes. A record that gets into another batch (its batch was lost with a damaged database, is
/// sent by a copy, or came out of quarantine) keeps id and content, and is dated as its device then knows: its
/// timestamp may move, and each end of its span moves with it or stays, being known from before.
struct RecordDates: Equatable {
    private static let spans = ["from", "to", "since", "until"]
    private static let happened = ["timestamp", "timestamp_start"]

    private let timestamp: Int64?
    private let span: [Int64?]

    init(_ record: WireJSON) {
        timestamp = Self.happened.compactMap { WireRecord.time(record[$0]) }.first
        let detail = record["detail"]
        span = Self.spans.map { WireRecord.time(detail?[$0]) }
    }

    /// An event's detail without its span.
    static func removed(from detail: WireJSON) -> WireJSON {
        guard case .object(let members) = detail else { return detail }
        return .object(
            members.filter { !spans.contains($0.key) || WireRecord.time($0.value) == nil }
        )
    }

    /// Whether a record that had the dates `first` may have these.
    func mayFollow(_ first: Self) -> Bool {
        guard let timestamp, let before = first.timestamp else { return self == first }
        return zip(span, first.span).allSatisfy { new, old in
            guard let new, let old else { return new == old }
            return new == old || new - old == timestamp - before
        }
    }
}
