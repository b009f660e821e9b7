// The seam between jobs and the gateway that does them.
package import Host
package import Records

/// The parts of a running gateway that jobs use; they may block, with a heartbeat in `stop`.
package protocol JobGateway: Sendable {
    var remote: RemoteSettings { get }
    /// The shortest time between two requests for the list.
    var interval: Duration { get }

    /// Fetches the list; nil if that is not allowed now or fails.
    func fetch(until stop: StopSignal) -> [UInt8]?

    /// Does a job; nil if `stop` ended it.
    func perform(_ action: RemoteJob.Action, until stop: StopSignal) -> JobOutcome?

    /// Uploads replies without waiting for the next interval.
    func uploadReplies()

    /// Shows the job that was answered last.
    func publish(_ reply: JobReply)

    func warn(_ what: String)
}
