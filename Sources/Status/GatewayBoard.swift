// The status board of a gateway: its present state.
package import Host
package import Proxy
package import Queue
package import StatusBoard
package import Upload

/// The states that a gateway shows, each with its subscribers.
package final class GatewayBoard: Sendable {
    package let sources: [SourceName: Publisher<SourceReport>]
    package let upload = Publisher<UploadReport>()
    package let proxy = Publisher<ProxyReport>()
    package let listen = Publisher<ListenReport>()
    /// Why a source does not run: `disabled`, `waiting for enrolment`.
    package let resting = StateBox([SourceName: String]())
    /// Which sources are off by their schedule.
    package let schedule = Publisher<ScheduleFigures>()
    /// Why nothing is collected at all (the device is not enrolled); nil if collecting is allowed.
    package let whyNotCollecting = StateBox<String?>(nil)
    /// Changed configuration keys that take effect at the next start.
    package let needRestart = StateBox([String]())
    package let errors = ErrorLog()
    package let uploadTally = StateBox(UploadTally())
    /// The MQTT intake; nil while no stream has a topic filter.
    package let messagesIn = StateBox<StatusReport.MessagesIn?>(nil)
    /// The settings from the server, and its job that was answered last.
    package let remote = StateBox(StatusReport.Remote())
    private let known = StateBox<PersistedState?>(nil)
    private let readPast: @Sendable () -> PersistedState?

    /// `past` reads the state before this start; it returns nil while there is no database.
    package init(past: @escaping @Sendable () -> PersistedState? = { PersistedState() }) {
        readPast = past
        sources = Dictionary(
            uniqueKeysWithValues: SourceName.allCases.map { ($0, Publisher<SourceReport>()) }
        )
    }

    /// The state before this start; empty while it cannot be read.
    package var past: PersistedState {
        known.update { past in
            past = past ?? readPast()
            return past ?? PersistedState()
        }
    }

    /// Stores the report's state in the queue's database for the next start.
    ///
    /// Does nothing until the past state was read, because it would be overwritten.
    package func keep(_ report: StatusReport, in queue: Queue) {
        _ = past
        if known.value != nil { queue.remember(PersistedState.memo, PersistedState(report).text) }
    }
}
