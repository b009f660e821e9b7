// The outputs beside the queue, in the status.
import Host
import Proxy
import StatusBoard

extension StatusReport {
    /// An output beside the queue: best effort, with the newest data and no promise.
    package struct Output: Codable, Sendable, Equatable {
        package var state = Source.State.unknown
        @OrNull package var reason: String?
        package var clients: Int = 0
        package var sent: Int = 0
        /// Dropped because a client or a server was too slow.
        package var dropped: Int = 0
        /// Connections that ended with a fault.
        package var errors: Int = 0
        @OrNull package var lastError: ErrorAt?
        package var detail: String = ""
    }
}

extension StatusReport.Output {
    /// The Bluetooth proxy's state; `date` gives the wall clock time of a past one.
    init(_ state: BoardState<ProxyReport>, _ date: (Stamp) -> WallTime) {
        let report = state.value ?? ProxyReport()
        switch state {
        case .unknown: break
        case .loading: self.state = .loading
        case .loaded: self.state = .loaded
        case .error(let failure, _): (self.state, reason) = (.error, failure.message)
        }
        (clients, sent, dropped) = (report.clients, report.sent, report.dropped)
        errors = report.faults
        detail = report.unannounced ?? ""
        lastError = report.lastFault.map {
            StatusReport.ErrorAt(
                code: $0.failure.code,
                message: $0.failure.message,
                at: date($0.at)
            )
        }
    }
}
