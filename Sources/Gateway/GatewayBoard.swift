// All that a gateway shows of itself, as it is now.
import Host
import Queue
import StatusBoard
import Upload

/// Every state that a gateway shows, and who is to be told of a change.
final class GatewayBoard: Sendable {
    let sources: [SourceName: Publisher<SourceReport>]
    let upload = Publisher<UploadReport>()
    /// Why a source does not run: `disabled`, `waiting for enrolment`.
    let resting = StateBox([SourceName: String]())
    /// Why nothing is collected at all: the device is not enrolled; nil where something may be.
    let whyNotCollecting = StateBox<String?>(nil)
    /// Keys of the configuration that were changed and take effect with the next start.
    let needRestart = StateBox([String]())
    let errors = ErrorLog()
    private let known = StateBox<PersistedState?>(nil)
    private let readPast: @Sendable () -> PersistedState?

    /// `past`: what was known before this start; nil as long as there is no database that could tell.
    init(past: @escaping @Sendable () -> PersistedState? = { PersistedState() }) {
        readPast = past
        sources = Dictionary(
            uniqueKeysWithValues: SourceName.allCases.map { ($0, Publisher<SourceReport>()) }
        )
    }

    /// What was known before this start; nothing while that cannot be told.
    var past: PersistedState {
        known.update { past in
            past = past ?? readPast()
            return past ?? PersistedState()
        }
    }

    /// Has the queue remember what a report says.
    ///
    /// Not before the past is known, or this would take its place.
    func keep(_ report: StatusReport, in queue: Queue) {
        _ = past
        if known.value != nil { queue.remember(PersistedState.memo, PersistedState(report).text) }
    }
}
