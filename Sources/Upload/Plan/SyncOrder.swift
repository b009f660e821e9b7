// In which order a sync sends: the newest of the small streams, what waited for long, sound at last.
import Host
import Records

/// What a sync does next; a pure value.
///
/// Every stream of the list that it is made of has its turn.
struct SyncOrder {
    /// Records of one stream that go before its backlog.
    static let newestRecords: Int64 = 1000

    enum Step: Equatable {
        /// A batch of the newest records of a stream; in the first pass only where more than `newestRecords`
        /// wait.
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
    /// While a backlog is sent, the newest records go in between this often.
    private let interval: Duration
    /// Streams whose backlog is not sent yet; the first one is being sent.
    private var backlog: ArraySlice<Stream>
    /// Small streams whose newest records the current pass has not sent yet.
    private var pass: [Stream] = []
    private var isFirstPass = true
    /// When the last pass began; nil before the first.
    private var passedAt: BootInstant?
    private var resting: Set<Stream> = []

    /// `first`: the stream that has the first turn, if it is in the list.
    init(
        _ streams: [Stream],
        small: [Stream],
        first: Stream? = nil,
        interval: Duration
    ) {
        self.streams = streams
        self.small = small
        self.interval = interval
        let start = first.flatMap { streams.firstIndex(of: $0) } ?? 0
        backlog = (streams[start...] + streams[..<start])[...]
    }

    /// The newest records go first, before any backlog; `isProbe`: though few wait, to see whether they are accepted.
    mutating func beginWithNewest(at now: BootInstant, isProbe: Bool = false) {
        beginPass(at: now)
        if isProbe { isFirstPass = false }
    }

    private mutating func beginPass(at now: BootInstant) {
        isFirstPass = passedAt == nil
        passedAt = now
        pass = small
    }

    /// nil when there is nothing left to do.
    mutating func next() -> Step? {
        pass.removeAll { resting.contains($0) }
        if !pass.isEmpty { return .newest(pass.removeFirst(), isFirst: isFirstPass) }
        backlog.removeAll { resting.contains($0) }
        return backlog.first.map { .backlog($0) }
    }

    /// A batch of a step went out, and its stream may go on.
    mutating func sent(_ step: Step, at now: BootInstant) {
        guard case .backlog = step, pass.isEmpty else { return }
        if passedAt.map({ now - $0 >= interval }) ?? true { beginPass(at: now) }
    }

    /// There is nothing (more) to send in a step.
    mutating func isEmpty(_ step: Step) {
        guard case .backlog(let stream) = step else { return }
        backlog.removeAll { $0 == stream }
    }

    /// A stream has no other turn in this sync.
    mutating func rests(_ stream: Stream) { resting.insert(stream) }

    /// The stream after the one whose backlog is being sent.
    ///
    /// The next sync begins with it, so that records on which the server fails delay no other stream.
    var following: Stream? {
        guard let current = backlog.first, let place = streams.firstIndex(of: current) else {
            return nil
        }
        return streams[(place + 1) % streams.count]
    }
}
