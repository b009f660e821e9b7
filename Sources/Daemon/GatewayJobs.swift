// The jobs that a server can ask of a running gateway.
import Host
import HTTP
import JSON
import Queue
import Records
import Remote
import Setup
import Status
import Upload

/// Fetches the list of jobs and does them, through the same functions as the control socket.
struct GatewayJobs: JobGateway {
    private static let syncLimit = Duration.seconds(600)

    let context: ServiceContext
    let services: Services
    let status: StatusPublication
    /// The command that examines the device; empty: reports are made without it.
    let doctor: [String]

    var remote: RemoteSettings { services.configuration.remote }
    var interval: Duration { services.configuration.upload.interval }

    func uploadReplies() { services.uploads?.uploader.tick() }

    func publish(_ reply: JobReply) {
        let at = context.queue.rightTime(at: reply.stamp) ?? reply.stamp.wall
        let state = reply.outcome.state.rawValue
        let job = StatusReport.Remote.Job(kind: reply.kind, state: state, at: at)
        context.board.remote.update { $0.lastJob = job }
    }

    func warn(_ what: String) { context.log.warning("jobs", ["why": what]) }

    func fetch(until stop: StopSignal) -> [UInt8]? {
        let upload = services.configuration.upload
        // While nothing may be collected a trial of settings would judge nothing.
        guard upload.destination == .ingest, services.whyNotCollecting == nil,
            let destination = DestinationSettings(context, services.configuration)
        else { return nil }
        let request = JobListRequest(
            destination,
            upload,
            context.queue,
            context.budget,
            clock: context.clock
        )
        do {
            let answer = try request.send(maxBytes: JobList.maxBytes + 1, until: stop)
            // A page is that of a captive portal, and says nothing about the jobs.
            if let answer, answer.status == 200, !answer.isPage { return answer.body }
            if let answer { warn("the list was not received: \(answer.message)") }
        } catch {
            warn("the list was not received: \(error)")
        }
        return nil
    }

    func perform(_ action: RemoteJob.Action, until stop: StopSignal) -> JobOutcome? {
        switch action {
        case .report: return report(until: stop)
        case .sync: return sync(until: stop)
        case .restart(let name):
            guard let source = SourceName(rawValue: name) else {
                return JobOutcome(.refused, "\"\(name)\" is not a source")
            }
            let why = stop.life.during("the restart of a source", for: .seconds(60)) {
                services.restart(source)
            }
            return why.map { JobOutcome(.failed, $0) } ?? JobOutcome(.done)
        case .resend(let stream, let since, let until):
            // The writer has a heartbeat of its own.
            stop.life.rests()
            return resend(ResendRequest(stream: stream, since: since, until: until))
        case .audio(let from, let to):
            stop.life.rests()
            return mark(AudioMarkRequest(from: from, to: to))
        case .invalid(let why): return JobOutcome(.refused, why)
        case .settings, .upgrade: return JobOutcome(.refused, "this has a trial of its own")
        }
    }

    private func resend(_ request: ResendRequest) -> JobOutcome {
        do {
            let handler = ResendHandler(queue: context.queue, configuration: services.configuration)
            let marked = try handler.resend(request)
            let gone = marked.gone.map { ", up to \(counted($0, "record")) are gone" } ?? ""
            return JobOutcome(.done, "\(counted(marked.records, "record")) to be sent again\(gone)")
        } catch {
            return JobOutcome(.failed, (error as? Failure)?.message ?? "not done: \(error)")
        }
    }

    private func mark(_ request: AudioMarkRequest) -> JobOutcome {
        let mode = services.configuration.sound.mode
        guard mode != .none else { return JobOutcome(.refused, "audio.upload is \"none\"") }
        do {
            let chunks = try request.mark(in: context.queue)
            if mode == .all { return JobOutcome(.done, "all sound is uploaded") }
            return JobOutcome(.done, "\(counted(chunks, "chunk")) of held sound to be sent")
        } catch {
            return JobOutcome(.failed, (error as? Failure)?.message ?? "not done: \(error)")
        }
    }

    /// Waits for the end of a sync; nil if the gateway stops first.
    private func sync(until stop: StopSignal) -> JobOutcome? {
        guard let uploader = services.uploads?.uploader, let isOver = try? Wakeup() else {
            return JobOutcome(.failed, "uploads are not running")
        }
        let result = StateBox<SyncResult?>(nil)
        uploader.sync { outcome in
            result.update { $0 = outcome }
            isOver.signal()
        }
        var entries = [PollEntry(isOver.descriptor), PollEntry(stop.descriptor)]
        _ = stop.wait(for: &entries, timeout: Self.syncLimit)
        if stop.isRaised { return nil }
        guard let result = result.value else {
            return JobOutcome(.failed, "the sync goes on after 10 minutes")
        }
        if result.isDone { return JobOutcome(.done) }
        let left =
            result.left.map { "\(counted($0, "record")) left" } ?? "it is unknown what is left"
        return JobOutcome(.failed, "\(left), \(result.quarantined) quarantined")
    }

    /// Returns the status, the examination by `waypost doctor` and the last lines of the log.
    private func report(until stop: StopSignal) -> JobOutcome? {
        let examination = Result { try DoctorProcess.output(of: doctor, until: stop) }
        if stop.isRaised { return nil }
        let report = stop.life.during("the status", for: .seconds(2)) {
            status.fresh(within: .seconds(1))
        }
        return outcome(report, examination)
    }

    private func outcome(_ report: StatusReport, _ examination: Result<[UInt8], any Error>)
        -> JobOutcome
    {
        var (json, message) = (JSONWriter(), "")
        json.object {
            $0.key("status")
            $0.raw(report.json)
            // A server need not know how this version prints its status.
            $0.field("text", printed(report))
            switch examination {
            case .success(let bytes):
                $0.key("doctor")
                $0.raw(bytes)
            case .failure(let error): message = "without an examination: \(error)"
            }
            $0.key("log")
            $0.array { for line in context.log.recentLines { $0.value(dated(line)) } }
        }
        return JobOutcome(.done, message, detail: String(decoding: json.bytes, as: UTF8.self))
    }

    /// The text of `waypost status`, as in a pipe.
    private func printed(_ report: StatusReport) -> String {
        let now = context.clock.wall()
        return StatusScreen(report, now: now, isColoured: false, rows: .max).text
    }

    /// A line of before the clock was set gets its right time; if that is not known, it says so.
    private func dated(_ line: (stamp: Stamp, text: String)) -> String {
        let known = context.queue.rightTime(at: line.stamp)
        return
            "\((known ?? line.stamp.wall).rfc3339)\(known == nil ? " (unsynced)" : "") \(line.text)"
    }
}
