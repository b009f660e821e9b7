// The status board of a gateway: its present state.
import Host
import Queue
import StatusBoard
import Upload

/// The states that a gateway shows, each with its subscribers.
final class GatewayBoard: Sendable {
    let sources: [SourceName: Publisher<SourceReport>]
    let upload = Publisher<UploadReport>()
    /// Why a source does not run: `disabled`, `waiting for enrolment`.
    let resting = StateBox([SourceName: String]())
    /// Why nothing is collected at all (the device is not enrolled); nil if collecting is allowed.
    let whyNotCollecting = StateBox<String?>(nil)
    /// Changed configuration keys that take effect at the next start.
    let needRestart = StateBox([String]())
    let errors = ErrorLog()
    private let known = StateBox<PersistedState?>(nil)
    private let readPast: @Sendable () -> PersistedState?

    /// `past` reads the state before this start; it returns nil while there is no database.
    init(past: @escaping @Sendable () -> PersistedState? = { PersistedState() }) {
        readPast = past
        sources = Dictionary(
            uniqueKeysWithValues: SourceName.allCases.map { ($0, Publisher<SourceReport>()) }
        )
    }

    /// The state before this start; empty while it cannot be read.
    var past: PersistedState {
        known.update { past in
            past = past ?? readPast()
            return past ?? PersistedState()
        }
    }

    /// Stores the report's state in the queue's database for the next start.
    ///
    /// Does nothing until the past state was read, because it would be overwritten.
    func keep(_ report: StatusReport, in queue: Queue) {
        _ = past
        if known.value != nil { queue.remember(PersistedState.memo, PersistedState(report).text) }
    }
}
