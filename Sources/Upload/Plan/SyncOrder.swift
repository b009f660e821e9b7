// The order of a sync: newest records of small streams, then backlogs, audio last.
import Host
import Records

/// Decides the next step of a sync; a pure value.
///
/// Every stream it is created with gets its turn.
struct SyncOrder {
    /// The most records of one stream that go before its backlog.
    static let newestRecords: Int64 = 1000
    /// So many, what a busy site has in five minutes, go at once if they fit into one batch.
    static let recordsAtOnce: Int64 = 4000

    enum Step: Equatable {
        /// A batch of the newest records of a stream; in the first pass only if more than
        /// `recordsAtOnce` are pending.
        case newest(Stream, isFirst: Bool)
        /// The next batch of a stream's backlog, oldest first.
        case backlog(Stream)

        var stream: Stream {
            switch self {
            case .newest(let stream, _), .backlog(let stream): stream
            }
        }
    }

    private let streams: [Stream]
    private let small: [Stream]
    /// The interval at which the newest records are sent while a backlog is drained.
    private let interval: Duration
    /// Streams whose backlog is not sent yet; the first one is being sent.
    private var backlog: ArraySlice<Stream>
    /// Small streams whose newest records the current pass has not sent yet.
    private var pass: [Stream] = []
    private var isFirstPass = true
    /// When the last pass began; nil before the first.
    private var passedAt: BootInstant?
    private var resting: Set<Stream> = []

    /// Creates the order; `first` is the stream that begins, if it is in the list.
    init(
        _ streams: [Stream],
        small: [Stream],
        first: Stream? = nil,
        interval: Duration
    ) {
        self.streams = streams
        self.small = small
        self.interval = interval
        invariant(Set(small).isSubset(of: streams), "each stream gets its turn")
        let start = first.flatMap { streams.firstIndex(of: $0) } ?? 0
        backlog = (streams[start...] + streams[..<start])[...]
    }

    /// Sends the newest records before any backlog.
    ///
    /// `isProbe` does so even if few are pending, to test whether the server accepts them.
    mutating func beginWithNewest(at now: BootInstant, isProbe: Bool = false) {
        beginPass(at: now)
        if isProbe { isFirstPass = false }
    }

    private mutating func beginPass(at now: BootInstant) {
        isFirstPass = passedAt == nil
        passedAt = now
        pass = small
    }

    /// Returns the next step; nil if nothing is left to do.
    mutating func next() -> Step? {
        pass.removeAll { resting.contains($0) }
        if !pass.isEmpty { return .newest(pass.removeFirst(), isFirst: isFirstPass) }
        backlog.removeAll { resting.contains($0) }
        return backlog.first.map { .backlog($0) }
    }

    /// Continues after a batch of a step was sent.
    mutating func sent(_ step: Step, at now: BootInstant) {
        guard case .backlog = step, pass.isEmpty else { return }
        if passedAt.map({ now - $0 >= interval }) ?? true { beginPass(at: now) }
    }

    /// Ends a step that has nothing (more) to send.
    mutating func isEmpty(_ step: Step) {
        guard case .backlog(let stream) = step else { return }
        backlog.removeAll { $0 == stream }
    }

    /// Ends a stream's turns in this sync.
    mutating func rests(_ stream: Stream) { resting.insert(stream) }

    /// The stream after the one whose backlog is being sent.
    ///
    /// The next sync begins with it, so that records on which the server fails do not delay other
    /// streams.
    var following: Stream? {
        guard let current = backlog.first, let place = streams.firstIndex(of: current) else {
            return nil
        }
        return streams[(place + 1) % streams.count]
    }
}
