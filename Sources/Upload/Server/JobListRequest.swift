// Fetches the server's list of jobs, which counts as a small stream.
package import Host
package import HTTP
package import Queue

/// `GET /api/device/jobs` (waypost-protocol(7), JOBS), outside of syncs.
package struct JobListRequest {
    private let destination: DestinationSettings
    private let upload: UploadSettings
    private let queue: Queue
    private let budget: DayBudget
    private let clock: any HostClock

    package init(
        _ destination: DestinationSettings,
        _ upload: UploadSettings,
        _ queue: Queue,
        _ budget: DayBudget,
        clock: any HostClock
    ) {
        (self.destination, self.upload, self.queue) = (destination, upload, queue)
        (self.budget, self.clock) = (budget, clock)
    }

    /// Fetches the list, an answer of at most `maxBytes`.
    ///
    /// Returns nil if quiet hours or the budget do not allow a request now, or if stopped. Throws a
    /// Failure of the token or of the network.
    package func send(maxBytes: Int, until stop: StopSignal) throws -> Answer? {
        guard isAllowed else { return nil }
        let url = Enrolment.url(ingest: destination.transport.endpoint, "jobs")
        var request = HTTPRequest(
            getting: "\(url)?device_id=\(destination.deviceID)",
            headers: ["X-Device-Token: \(try destination.token())", "Accept: application/json"]
        )
        (request.isOnlyTry, request.maxAnswer) = (true, maxBytes)
        request.limit = .seconds(60)
        let transport = try Transport(destination.transport)
        let exchange = transport.send(request, until: stop)
        let traffic = transport.takeTraffic()
        // The writer has a heartbeat of its own.
        stop.life.rests()
        _ = try? queue.perform { try $0.record(traffic) }
        budget.spend(traffic)
        switch exchange {
        case .answered(let answer): return answer
        case .failed(let failure): throw failure
        case .stopped: return nil
        }
    }

    private var isAllowed: Bool {
        let wall = queue.rightTime(at: clock.stamp())
        if let wall, upload.quiet?.left(at: wall) != nil { return false }
        guard let limit = upload.dailyBudget else { return true }
        return budget.room(of: limit, .small, tail: .zero) >= DayBudget.least
    }
}
