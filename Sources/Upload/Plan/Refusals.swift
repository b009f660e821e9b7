// How far a sync goes on with what a server refuses, so that a server that refuses everything is asked little.
import Records

/// What a sync does after a batch.
enum AfterBatch {
    case goOn
    /// Its stream rests until the next sync.
    case streamRests
    /// Nothing more goes out in this sync.
    case syncEnds
}

/// Counts refusals of one sync after another; a pure value.
struct Refusals {
    /// After so many records in a row that were refused alone, the rest of their stream waits for the next sync.
    static let aloneInARow = 10
    /// After so many refusals in a row, of any stream, each further stream has one try.
    static let beforeOnlyTries = 28
    /// After so many refusals in a row, of any stream, the sync is over.
    static let inARow = 40

    /// Refusals since something was accepted, of any stream.
    private var run = 0
    /// Records of a stream that were refused alone since something of it was accepted.
    private var alone: [Stream: Int] = [:]
    private var accepted: Set<Stream> = []
    /// Batches that have had their verdict in this sync.
    private var judged: Set<Int64> = []
    /// Streams of which nothing was taken in the sync before.
    ///
    /// In these, records that were refused before come first: or they would never have as many verdicts as it takes to
    /// set them aside. In other streams they come last, so that they delay nothing.
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
    mutating func refused(_ batch: Int64, _ stream: Stream, isAlone: Bool) -> AfterBatch {
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

    private mutating func cut(_ stream: Stream, _ next: AfterBatch) -> AfterBatch {
        if !accepted.contains(stream) { refusedFirst.insert(stream) }
        cutShort = cutShort ?? stream
        return next
    }
}
