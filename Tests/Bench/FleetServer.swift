// The simulated server: there, away, or asking to be left alone.
import Host
import HTTP
import Upload

/// How a server fails a fleet.
enum OutageKind: String, CaseIterable, Codable, Sendable {
    /// Nothing listens.
    case refused
    /// 503 without a word on when to come back.
    case unavailable
    /// Refused for the first half, then 503 with `Retry-After: 120`.
    case refusedThenRetryAfter = "refused-then-retry-after"
    /// 503 with a date in `Retry-After`: the same moment, the end of the outage, for everybody.
    case retryAfterDate = "retry-after-date"
    /// Requests hang until the gateway gives up after 30 s.
    case stalled

    var words: String {
        switch self {
        case .refused: "connection refused"
        case .unavailable: "503"
        case .refusedThenRetryAfter: "refused, then 503 with Retry-After: 120"
        case .retryAfterDate: "503 with one Retry-After date for all"
        case .stalled: "no answer for 30 s"
        }
    }
}

/// The server's answer to one request.
enum SimulatedAnswer: Sendable {
    case accepted
    /// The sync ends; the server asked for `after`.
    case failed(after: Duration?, isOfOneStream: Bool)

    var takes: Duration {
        switch self {
        case .accepted: .milliseconds(300)
        case .failed: .milliseconds(50)
        }
    }
}

/// A server that is away between two moments.
struct SimulatedServer: Sendable {
    var kind: OutageKind
    var from: BootInstant
    var to: BootInstant

    /// The verdict is the gateway's own: an answer goes through the table of waypost-protocol(7), ANSWERS.
    func answer(at now: BootInstant) -> SimulatedAnswer {
        guard now >= from, now < to else { return .accepted }
        switch kind {
        case .refused, .stalled:
            return .failed(after: nil, isOfOneStream: false)
        case .unavailable:
            return Self.verdict(retryAfter: 0)
        case .refusedThenRetryAfter:
            let isAway = now < from + (to - from) / 2
            return isAway
                ? .failed(after: nil, isOfOneStream: false) : Self.verdict(retryAfter: 120)
        case .retryAfterDate:
            return Self.verdict(retryAfter: Int((to - now).milliseconds / 1000) + 1)
        }
    }

    private static func verdict(retryAfter: Int) -> SimulatedAnswer {
        guard case .retry(_, let after) = Verdict(Answer(status: 503, retryAfter: retryAfter))
        else { return .accepted }
        return .failed(after: after, isOfOneStream: after == nil)
    }
}

/// Random numbers that are the same for the same seed (SplitMix64).
struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
