// Starts, stops and restarts the sources and the uploader as the configuration says.
import Audio
import CLinux
import Field
import Host
import Queue
import Records
import Setup
import Status
import StatusBoard
import Upload

/// The running sources and the uploader; applies a configuration part by part.
final class Services: Sendable {
    /// The time that a part has to stop before it is abandoned.
    static let stopLimit = StoppableThread.stopLimit
    /// The time that a change waits for the previous one to end.
    private static let turnLimit = Duration.seconds(5)

    private struct State: Sendable {
        var configuration: Configuration
        var sources: [SourceName: SourceRun] = [:]
        var uploads: Uploads?
        /// By part: the threads of earlier runs that were abandoned.
        var left: [String: [Heartbeat]] = [:]
        /// The server or bucket that has accepted this device since the start.
        var acceptedBy: String?
        /// Why nothing may be collected, as last read from the state directory.
        var whyNot: String?
        var isStopped = false
    }

    private let context: ServiceContext
    private let state: StateBox<State>
    /// Held while something is started or stopped: one change at a time.
    private let turn: Turn
    private let whenEnrolled: @Sendable () -> Void

    /// Creates the services; nothing runs yet.
    ///
    /// `whenEnrolled` must `apply` the configuration again, on a thread that may block.
    init(
        _ context: ServiceContext,
        _ configuration: Configuration,
        whenEnrolled: @escaping @Sendable () -> Void
    ) throws {
        self.context = context
        turn = try Turn()
        self.whenEnrolled = whenEnrolled
        state = StateBox(State(configuration: configuration))
    }

    // MARK: Questions

    var configuration: Configuration { state.value.configuration }
    var uploads: Uploads? { state.value.uploads }
    func source(_ name: SourceName) -> SourceRun? { state.value.sources[name] }

    /// Why nothing is collected yet; nil if collecting is allowed.
    ///
    /// Reads memory only, because the health timer asks and the disk may hang.
    var whyNotCollecting: String? { state.value.whyNot }

    /// Reads from the disk why nothing is collected yet.
    private static func readWhyNotCollecting(_ state: State) -> String? {
        if let target = state.configuration.upload.target, state.acceptedBy == target { return nil }
        return state.configuration.whyNotCollecting
    }

    /// Makes a source's part for the supervisor.
    func part(_ name: SourceName, _ watch: SourceMonitor) -> Supervisor.Part {
        Supervisor.Part(
            name: name.rawValue,
            word: { self.word(name) },
            ask: { self.source(name)?.check() },
            advice: "it hangs again and again: unplug it for a moment",
            failed: { failure, since in
                self.context.board.sources[name]?.failed(failure)
                watch.isAway(name, since: since)
            },
            recover: { self.replace(name) },
            isBack: { self.source(name)?.sink.endTrial() }
        )
    }

    // MARK: Changes

    /// Starts, stops and restarts the parts whose settings differ; returns their names.
    ///
    /// A part that cannot be started shows an error, and the next call retries it.
    @discardableResult func apply(_ configuration: Configuration) -> [String] {
        let changed: [String]? = turn.take {
            guard !state.value.isStopped else { return [] }
            let before = state.value.configuration.schedules
            state.update { $0.configuration = configuration }
            if configuration.schedules != before { context.schedule.hasChanged.signal() }
            return (changeUploads() ? ["upload"] : []) + changeSources().map(\.rawValue)
        }
        return changed ?? []
    }

    private func changeUploads() -> Bool {
        let now = state.value
        let wanted = now.configuration.upload.target.map { _ in UploadSlice(now.configuration) }
        guard now.uploads?.slice != wanted else { return false }
        stopUploads(by: SystemClock().now() + Self.stopLimit)
        startUploads()
        // The change may have fixed the failure.
        if context.board.upload.state.value?.isFailing == true {
            uploads?.uploader.networkChanged()
        }
        return true
    }

    private func startUploads() {
        let configuration = state.value.configuration
        let target = configuration.upload.target
        if tooManyHang("upload", context.board.upload) { return }
        attempt("upload", context.board.upload) {
            let uploads = try Uploads(context, configuration) { [weak self] in
                self?.state.update { $0.acceptedBy = target }
                self?.whenEnrolled()
            }
            state.update { $0.uploads = uploads }
        }
    }

    /// Reads from the disk whether collecting is allowed, and starts and stops sources.
    private func changeSources() -> [SourceName] {
        let why = Self.readWhyNotCollecting(state.value)
        state.update { $0.whyNot = why }
        context.board.whyNotCollecting.update { $0 = why }
        return adaptSources()
    }

    /// Starts and stops sources as configuration, enrolment and schedules say.
    private func adaptSources() -> [SourceName] {
        let now = state.value
        let orders = context.schedule.look(now.configuration)
        var wanted: [SourceName: SourceOrder] = [:]
        var resting: [SourceName: String] = [:]
        for name in SourceName.allCases {
            guard let slice = SourceSlice(name, now.configuration) else {
                resting[name] = "disabled in the configuration"
                continue
            }
            if let why = now.whyNot {
                resting[name] = why
            } else {
                wanted[name] = SourceOrder(slice, orders[name], after: now.sources[name])
            }
        }
        for (name, run) in now.sources where resting[name] == nil {
            run.obey(orders[name], context)
        }
        let leaving = now.sources.filter { $0.value.differs(from: wanted[$0.key]) }
        planStop(of: Array(leaving.keys))
        stop(Array(leaving.keys), by: SystemClock().now() + Self.stopLimit)
        context.board.resting.update { [resting] in $0 = resting }
        // While audio is switched off, missing sound is not a gap.
        if !now.configuration.audio.isEnabled { AudioMemo(.off).keep(in: context.queue) }
        let coming = wanted.keys.filter { source($0) == nil }
        for name in coming { start(wanted[name]) }
        return SourceName.allCases.filter { leaving.keys.contains($0) || coming.contains($0) }
    }

    /// Starts and stops sources at each change of their schedules; blocks until `stop`.
    func followSchedules(until stop: StopSignal) {
        let timer = Descriptor(owning: waypost_boottime_timer())
        let schedule = context.schedule
        while !stop.isRaised {
            schedule.hasChanged.clear()
            // Sources and other changes have heartbeats of their own.
            stop.life.rests()
            let changed: [SourceName]? = turn.take(within: Self.turnLimit) {
                state.value.isStopped ? [] : adaptSources()
            }
            // Another change hangs: try again soon.
            let wake = changed == nil ? context.clock.now() + .seconds(1) : schedule.wake
            waypost_arm_timer(timer.number, wake?.nanoseconds ?? 0)
            var entries = [
                PollEntry(timer.number), PollEntry(schedule.hasChanged.descriptor),
                PollEntry(stop.descriptor),
            ]
            _ = stop.wait(for: &entries)
        }
    }

    private func start(_ order: SourceOrder?, isOnTrial: Bool = false) {
        guard let order else { return }
        let name = order.slice.name
        let board = context.board.sources[name]
        if tooManyHang(name.rawValue, board) { return }
        attempt(name.rawValue, board) {
            let run = try SourceRun(order, context, isOnTrial: isOnTrial)
            state.update { $0.sources[name] = run }
        }
    }

    /// Starts a part, or publishes why that failed: the board would still show its last state.
    private func attempt<Value>(
        _ what: String,
        _ board: Publisher<Value>?,
        _ body: () throws -> Void
    ) {
        do {
            try body()
        } catch {
            let failure = (error as? Failure) ?? Failure("\(what) could not be started: \(error)")
            if tell(failure, board) { context.log.error(what, ["why": failure.message]) }
        }
    }

    /// Publishes a failure once; returns false if the board shows it already.
    @discardableResult
    private func tell<Value>(_ failure: Failure, _ board: Publisher<Value>?) -> Bool {
        if case .error(failure, _)? = board?.state { return false }
        board?.failed(failure)
        return true
    }

    /// Restarts one source, and no other; returns why that failed, or nil.
    ///
    /// Waits at most `stopLimit` for the source to release its device.
    func restart(_ name: SourceName) -> String? {
        let off = context.board.schedule.state.value?.off[name]
        if let why = context.board.resting.value[name] ?? off {
            return "\(name.rawValue) is not running: \(why)"
        }
        let isDone = restart(name, within: Self.stopLimit, isOnTrial: false)
        guard let isDone else {
            return "another start or stop is in progress and hangs; `waypost status` shows it"
        }
        return isDone ? nil : "\(name.rawValue) could not be started; `waypost status` says why"
    }

    /// Abandons a hung run of a source, and starts another.
    func replace(_ name: SourceName) { _ = restart(name, within: .zero, isOnTrial: true) }

    /// Restarts a source; returns nil if another change did not end in time.
    private func restart(_ name: SourceName, within limit: Duration, isOnTrial: Bool) -> Bool? {
        turn.take(within: Self.turnLimit) {
            guard !state.value.isStopped, let run = source(name) else { return false }
            if !isOnTrial { planStop(of: [name]) }
            stop([name], by: SystemClock().now() + limit)
            start(run.order, isOnTrial: isOnTrial)
            return source(name) != nil
        }
    }

    /// Abandons a hung uploader, and starts another.
    func replaceUploads() {
        turn.take(within: Self.turnLimit) {
            guard !state.value.isStopped else { return }
            stopUploads(by: SystemClock().now())
            startUploads()
        }
    }

    // MARK: Stopping

    /// Stops everything for good; returns false if a part hangs and was abandoned.
    @discardableResult func stop(by deadline: BootInstant) -> Bool {
        // All are asked to stop before this waits for the turn.
        let now = state.update { state in
            state.isStopped = true
            return state
        }
        planStop(of: Array(now.sources.keys))
        for run in now.sources.values { run.raise() }
        now.uploads?.raise()
        let hasEnded = turn.take(within: deadline - SystemClock().now()) { endAll(by: deadline) }
        // The change that has the turn hangs: the sources are stopped anyway, but not in order.
        return hasEnded ?? (endAll(by: deadline) && false)
    }

    private func endAll(by deadline: BootInstant) -> Bool {
        let sourcesEnded = stop(SourceName.allCases, by: deadline)
        return stopUploads(by: deadline) && sourcesEnded
    }

    /// Remembers that audio is missing from now on because of a stop that was asked for.
    private func planStop(of names: [SourceName]) {
        guard names.contains(.audio), let run = source(.audio), !run.hasClosed else { return }
        let now = context.clock.stamp()
        // A device that was opened for a later window has not recorded anything yet.
        guard run.window.opens.boot <= now.boot else { return }
        AudioMemo(.stopped(now), due: run.due).keep(in: context.queue)
    }

    @discardableResult private func stop(_ names: [SourceName], by deadline: BootInstant) -> Bool {
        let runs = names.compactMap { source($0) }
        for run in runs { run.raise() }
        let ended = runs.map { run in
            let hasEnded = run.stop(by: deadline)
            if !hasEnded { leave(run.slice.name.rawValue, [run.life]) }
            return hasEnded
        }
        state.update { state in for name in names { state.sources[name] = nil } }
        return ended.allSatisfy { $0 }
    }

    @discardableResult private func stopUploads(by deadline: BootInstant) -> Bool {
        guard let uploads else { return true }
        let hasEnded = uploads.stop(by: deadline)
        if !hasEnded { leave("upload", uploads.lives) }
        state.update { $0.uploads = nil }
        return hasEnded
    }

    // MARK: Threads that hang

    /// The heartbeat of the source's run, or of the abandoned run that prevents a new one.
    private func word(_ name: SourceName) -> Heartbeat.Word? {
        if let run = source(name) { return run.life.word }
        let isOff = context.board.schedule.state.value?.off[name] != nil
        if isOff || context.board.resting.value[name] != nil { return nil }
        return left(name.rawValue).last?.word
    }

    /// The heartbeat of the uploader, or of the abandoned one that prevents a new one.
    var uploadsWord: Heartbeat.Word? {
        if let uploads { return uploads.word }
        return configuration.upload.target == nil ? nil : left("upload").last?.word
    }

    private func leave(_ part: String, _ lives: [Heartbeat]) {
        let hanging = lives.filter { !$0.hasEnded }
        state.update { $0.left[part, default: []] += hanging }
        let calls = hanging.map { "\($0.word.call)" }.joined(separator: ", ")
        context.log.warning("abandoned, it hangs", ["part": part, "in": calls])
    }

    /// The heartbeats of abandoned runs of a part that still hang.
    private func left(_ part: String) -> [Heartbeat] {
        state.update { state in
            state.left[part]?.removeAll(where: \.hasEnded)
            return state.left[part] ?? []
        }
    }

    /// Returns true, and publishes why, if too many runs of a part hang to start another.
    ///
    /// Each start may leave one more hung thread behind; this limits recoveries, reloads and
    /// restarts by people together. The health timer retries (`apply`), and the failure is reported
    /// once.
    private func tooManyHang<Value>(_ part: String, _ board: Publisher<Value>?) -> Bool {
        let left = left(part)
        guard left.count > PartHealth.recoveries, let call = left.last?.word.call else {
            return false
        }
        let failure = Failure(
            "\(part): not started, \(left.count) earlier starts of it hang, the last in \(call)"
        )
        tell(failure, board)
        return true
    }
}
