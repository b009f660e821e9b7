// The timestamps of a record on the wire, and their allowed changes when it is resent.
internal import Host

/// When a record happened and, in an event's detail, the time span it describes.
///
/// A retry has the same bytes. A record that gets into another batch (its batch was lost with a
/// damaged database, is sent by a copy, or left quarantine) keeps id and content, and is dated by
/// what its device knows then: its timestamp may move, and each end of its span moves with it or
/// stays if it was already known.
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

    /// Returns an event's detail without its span.
    static func removed(from detail: WireJSON) -> WireJSON {
        guard case .object(let members) = detail else { return detail }
        return .object(
            members.filter { !spans.contains($0.key) || WireRecord.time($0.value) == nil }
        )
    }

    /// Returns whether a record first sent with the dates `first` may have these.
    func mayFollow(_ first: Self) -> Bool {
        guard let timestamp, let before = first.timestamp else { return self == first }
        return zip(span, first.span).allSatisfy { new, old in
            guard let new, let old else { return new == old }
            return new == old || new - old == timestamp - before
        }
    }
}
