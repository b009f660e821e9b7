// Limits how long a sync continues when the server refuses records.
import Host
import Records

/// The next action of a sync after a batch.
enum AfterBatch {
    case goOn
    /// The stream pauses until the next sync.
    case streamRests
    /// Nothing more is sent in this sync.
    case syncEnds
}

/// Counts the refusals of one sync after another; a pure value.
struct Refusals {
    /// The number of single records refused in a row after which their stream waits for the next
    /// sync.
    static let aloneInARow = 10
    /// The number of refusals in a row, over all streams, after which each further stream gets one
    /// try.
    static let beforeOnlyTries = 28
    /// The number of refusals in a row, over all streams, that ends the sync.
    static let inARow = 40

    /// Refusals since anything was accepted, over all streams.
    private var run = 0
    /// Single records of a stream that were refused since one of its batches was accepted.
    private var alone: [Stream: Int] = [:]
    private var accepted: Set<Stream> = []
    /// Batches that have had their verdict in this sync.
    private var evaluated: Set<Int64> = []
    /// Streams that had nothing accepted in the previous sync.
    ///
    /// In these, previously refused records come first, or they would never get enough verdicts to
    /// be quarantined. In other streams they come last, so that they delay nothing.
    private var refusedFirst: Set<Stream> = []
    /// The first stream that was cut short by refusals of others; the next sync begins with it.
    private(set) var cutShort: Stream?

    mutating func beginSync() {
        let refusedFirst = refusedFirst
        self = Refusals()
        self.refusedFirst = refusedFirst
    }

    /// Returns whether previously refused records go before the rest of their stream.
    func comeFirst(_ stream: Stream) -> Bool {
        refusedFirst.contains(stream) && !accepted.contains(stream)
    }

    /// Returns whether a batch had its verdict: a single record gets one per sync.
    func hasJudged(_ batch: Int64) -> Bool { evaluated.contains(batch) }

    mutating func accepted(_ stream: Stream) {
        run = 0
        alone[stream] = 0
        accepted.insert(stream)
        refusedFirst.remove(stream)
    }

    /// Counts a refused batch; `isAlone` means that it is a single record.
    mutating func refused(_ batch: Int64, _ stream: Stream, isAlone: Bool) -> AfterBatch {
        evaluated.insert(batch)
        run += 1
        if isAlone { alone[stream, default: 0] += 1 }
        invariant(run <= Self.inARow, "refusals in a row end the sync")
        if run >= Self.inARow { return cut(stream, .syncEnds) }
        if alone[stream, default: 0] >= Self.aloneInARow {
            if !accepted.contains(stream) { refusedFirst.insert(stream) }
            return .streamRests
        }
        return run >= Self.beforeOnlyTries ? cut(stream, .streamRests) : .goOn
    }

    private mutating func cut(_ stream: Stream, _ next: AfterBatch) -> AfterBatch {
        if !accepted.contains(stream) { refusedFirst.insert(stream) }
        cutShort = cutShort ?? stream
        return next
    }
}
