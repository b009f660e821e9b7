// The outputs beside the queue, in the status.
package import Host
import Proxy
import StatusBoard

extension StatusReport {
    /// An output beside the queue: best effort, with the newest data and no promise.
    package struct Output: Codable, Sendable, Equatable {
        /// `connected` or `connecting`; of one that others connect to, as of a source.
        package var state = Source.State.unknown.rawValue
        /// Since when it has been in this state.
        @OrNull package var since: WallTime?
        @OrNull package var reason: String?
        /// The server that it connects to; empty if others connect to it.
        package var peer = ""
        package var clients = 0
        /// Messages, or advertisements, since the start or the last change of its settings.
        package var sent = 0
        /// Not sent: there was no connection, or it was too slow.
        package var dropped = 0
        /// Connections that ended with a fault.
        package var errors = 0
        @OrNull package var lastError: ErrorAt?
        package var detail: String = ""
    }
}

extension StatusReport.Output {
    /// The Bluetooth proxy's state; `date` gives the wall clock time of a past one.
    init(_ state: BoardState<ProxyReport>, _ date: (Stamp) -> WallTime) {
        let report = state.value ?? ProxyReport()
        receive(state)
        (clients, sent, dropped) = (report.clients, report.sent, report.dropped)
        errors = report.faults
        detail = report.unannounced ?? ""
        lastError = report.lastFault.map { StatusReport.ErrorAt($0.failure, at: date($0.at)) }
    }

    /// The listen socket's state; `sent` and `dropped` are samples.
    init(_ state: BoardState<ListenReport>) {
        let report = state.value ?? ListenReport()
        receive(state)
        (clients, sent, dropped) = (report.readers, report.sent, report.lost)
    }

    /// Takes the state of an output to which others connect.
    private mutating func receive<Report>(_ state: BoardState<Report>) {
        switch state {
        case .unknown: break
        case .loading: self.state = StatusReport.Source.State.loading.rawValue
        case .loaded: self.state = StatusReport.Source.State.loaded.rawValue
        case .error(let failure, _):
            self.state = StatusReport.Source.State.error.rawValue
            reason = failure.message
        }
    }
}
