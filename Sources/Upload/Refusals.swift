// How far a sync goes on with what a server refuses, so that a server that refuses everything is asked little.
internal import Streams

/// Counts refusals of one sync after another; a pure value.
struct Refusals {
    /// Records in a row that stood refused alone: the rest of their stream waits for the next sync.
    static let aloneInARow = 10
    /// Refusals in a row of any stream, after which each further stream has one try.
    static let beforeOnlyTries = 28
    /// Refusals in a row of any stream, after which the sync is over.
    static let inARow = 40

    enum Next {
        case goOn, streamRests, syncEnds
    }

    /// Refusals since something was accepted, of any stream.
    private var run = 0
    /// Records of a stream that were refused alone since something of it was accepted.
    private var alone: [Stream: Int] = [:]
    private var accepted: Set<Stream> = []
    /// Batches that have had their verdict in this sync.
    private var judged: Set<Int64> = []
    /// Streams of which nothing was taken in the sync before.
    ///
    /// Refused records come first there, or they would never have all their verdicts. Elsewhere they come last,
    /// and hold nothing up.
    private var refusedFirst: Set<Stream> = []
    /// The first stream that was cut short because others had been refused so often; it begins the next sync.
    private(set) var cutShort: Stream?

    mutating func beginSync() {
        let refusedFirst = refusedFirst
        self = Refusals()
        self.refusedFirst = refusedFirst
    }

    /// Whether records that stood refused in earlier syncs go before the rest of their stream.
    func comeFirst(_ stream: Stream) -> Bool {
        refusedFirst.contains(stream) && !accepted.contains(stream)
    }

    /// A record that stands alone has one verdict a sync.
    func hasJudged(_ batch: Int64) -> Bool { judged.contains(batch) }

    mutating func accepted(_ stream: Stream) {
        run = 0
        alone[stream] = 0
        accepted.insert(stream)
        refusedFirst.remove(stream)
    }

    /// A batch was refused; `isAlone`: it is one record.
    mutating func refused(_ batch: Int64, _ stream: Stream, isAlone: Bool) -> Next {
        judged.insert(batch)
        run += 1
        if isAlone { alone[stream, default: 0] += 1 }
        if run >= Self.inARow { return cut(stream, .syncEnds) }
        if alone[stream, default: 0] >= Self.aloneInARow {
            if !accepted.contains(stream) { refusedFirst.insert(stream) }
            return .streamRests
        }
        return run >= Self.beforeOnlyTries ? cut(stream, .streamRests) : .goOn
    }

    private mutating func cut(_ stream: Stream, _ next: Next) -> Next {
        if !accepted.contains(stream) { refusedFirst.insert(stream) }
        cutShort = cutShort ?? stream
        return next
    }
}
