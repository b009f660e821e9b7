// Starts, stops and restarts the sources and the uploader as the configuration says.
import Host
import Live
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
    static let turnLimit = Duration.seconds(5)

    struct State: Sendable {
        var configuration: Configuration
        var sources: [SourceName: SourceRun] = [:]
        var uploads: Uploads?
        var live: LiveRun?
        var proxy: ProxyRun?
        /// Made for the first proxy, and kept: a running beacon source has it.
        var tap: AdvertisementTap?
        /// By part: the threads of earlier runs that were abandoned.
        var left: [String: [Heartbeat]] = [:]
        /// The server or bucket that has accepted this device since the start.
        var acceptedBy: String?
        /// Why nothing may be collected, as last read from the state directory.
        var whyNot: String?
        var isStopped = false
    }

    let context: ServiceContext
    let state: StateBox<State>
    /// Held while something is started or stopped: one change at a time.
    let turn = Turn()
    private let whenEnrolled: @Sendable () -> Void

    /// Creates the services; nothing runs yet.
    ///
    /// `whenEnrolled` must `apply` the configuration again, on a thread that may block.
    init(
        _ context: ServiceContext,
        _ configuration: Configuration,
        whenEnrolled: @escaping @Sendable () -> Void
    ) {
        self.context = context
        self.whenEnrolled = whenEnrolled
        state = StateBox(State(configuration: configuration))
    }

    // MARK: Questions

    var configuration: Configuration { state.value.configuration }
    var uploads: Uploads? { state.value.uploads }
    var live: LiveRun? { state.value.live }
    var proxy: ProxyRun? { state.value.proxy }
    func source(_ name: SourceName) -> SourceRun? { state.value.sources[name] }

    /// Why nothing is collected yet; nil if collecting is allowed.
    ///
    /// Reads memory only, because the health timer asks and the disk may hang.
    var whyNotCollecting: String? { state.value.whyNot }

    /// Reads from the disk why nothing is collected yet.
    static func readWhyNotCollecting(_ state: State) -> String? {
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
                let now = self.context.clock.stamp()
                // An abandoned run hangs since before the source was due again.
                let stamp = self.source(name).map { _ in now.advanced(by: since - now.boot) }
                self.context.record(.failed(failure.message), of: name, at: stamp)
            },
            recover: { self.replace(name) },
            isBack: {
                self.source(name)?.sink.endTrial()
                self.source(name)?.sink.recordEffort(again: true)
            }
        )
    }

    // MARK: Changes

    /// Starts, stops and restarts the parts whose settings differ; returns their names.
    ///
    /// A part that cannot be started shows an error, and the next call retries it. `isReload`:
    /// secrets are read again, too.
    @discardableResult
    func apply(_ configuration: Configuration, isReload: Bool = false) -> [String] {
        let changed: [String]? = turn.take {
            guard !state.value.isStopped else { return [] }
            let before = state.value.configuration.schedules
            state.update { $0.configuration = configuration }
            if configuration.schedules != before { context.schedule.hasChanged.signal() }
            return (changeUploads() ? ["upload"] : []) + (changeLive() ? ["mqtt"] : [])
                + (changeProxy(isReload) ? ["proxy"] : [])
                + changeSources().map(\.rawValue)
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
        if tooManyHang("upload", context.board.upload) != nil { return }
        attempt("upload", context.board.upload) {
            let uploads = try Uploads(context, configuration) { [weak self] in
                self?.state.update { $0.acceptedBy = target }
                self?.whenEnrolled()
            }
            state.update { $0.uploads = uploads }
        }
    }

    private func changeLive() -> Bool {
        let wanted = LiveSlice(configuration)
        guard live?.slice != wanted else { return false }
        stopLive(by: SystemClock().now() + Self.stopLimit)
        startLive(wanted)
        return true
    }

    private func startLive(_ slice: LiveSlice?) {
        let noBoard: Publisher<OutputReport>? = nil
        guard let slice, tooManyHang("mqtt", noBoard) == nil else { return }
        attempt("mqtt", noBoard) {
            let run = try LiveRun(slice, context)
            state.update { $0.live = run }
        }
    }

    /// Before the sources: one that starts gets the tap.
    private func changeProxy(_ isReload: Bool) -> Bool {
        let wanted = ProxySlice(state.value.configuration)
        // The old one is not held here: it listens until its last reference is gone.
        if proxy?.slice == wanted, !isReload || proxy?.hasCurrentKey != false { return false }
        stopProxy(by: SystemClock().now() + Self.stopLimit)
        guard let wanted else {
            context.board.proxy.publish(.unknown)
            return true
        }
        if tooManyHang("proxy", context.board.proxy) != nil { return false }
        attempt("proxy", context.board.proxy) {
            let tap = try state.value.tap ?? AdvertisementTap()
            state.update { $0.tap = tap }
            let run = try ProxyRun(wanted, context, tap)
            state.update { $0.proxy = run }
        }
        return proxy != nil
    }

    /// Starts a part, or publishes why that failed: the board would still show its last state.
    func attempt<Value>(
        _ what: String,
        _ board: Publisher<Value>?,
        _ body: () throws -> Void
    ) {
        do {
            try body()
        } catch {
            let failure = (error as? Failure) ?? Failure("\(what) could not be started: \(error)")
            if report(failure, board) { context.log.error(what, ["why": failure.message]) }
        }
    }

    /// Publishes a failure once; returns false if the board shows it already.
    @discardableResult
    private func report<Value>(_ failure: Failure, _ board: Publisher<Value>?) -> Bool {
        if case .error(failure, _)? = board?.state { return false }
        board?.failed(failure)
        return true
    }

    /// Abandons a hung uploader, and starts another.
    func replaceUploads() {
        turn.take(within: Self.turnLimit) {
            guard !state.value.isStopped else { return }
            stopUploads(by: SystemClock().now())
            startUploads()
        }
    }

    /// Abandons a hung live output, and starts another.
    func replaceLive() {
        turn.take(within: Self.turnLimit) {
            guard !state.value.isStopped else { return }
            stopLive(by: SystemClock().now())
            startLive(LiveSlice(configuration))
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
        for run in now.sources.values { run.thread.raise() }
        now.uploads?.raise()
        now.live?.thread.raise()
        now.proxy?.thread.raise()
        let hasEnded = turn.take(within: deadline - SystemClock().now()) { endAll(by: deadline) }
        // The change that has the turn hangs: the sources are stopped anyway, but not in order.
        return hasEnded ?? (endAll(by: deadline) && false)
    }

    private func endAll(by deadline: BootInstant) -> Bool {
        let why = "the gateway was stopped"
        // One that rests by its schedule has no run that would end.
        for name in SourceName.allCases where source(name) == nil {
            context.record(.off(why), of: name)
        }
        let sourcesEnded = stop(SourceName.allCases, by: deadline) { _ in why }
        let liveEnded = stopLive(by: deadline)
        let proxyEnded = stopProxy(by: deadline)
        return stopUploads(by: deadline) && liveEnded && sourcesEnded && proxyEnded
    }

    /// Stops sources; `why` says in their effort accounts why they are off, nil that something else
    /// does.
    @discardableResult func stop(
        _ names: [SourceName],
        by deadline: BootInstant,
        _ why: (SourceName) -> String?
    ) -> Bool {
        let runs = names.compactMap { source($0) }
        for run in runs { run.thread.raise() }
        let ended = runs.map { run in
            let hasEnded = run.stop(by: deadline)
            if !hasEnded { leave(run.slice.name.rawValue, [run.thread.life]) }
            if let why = why(run.slice.name) { context.record(.off(why), of: run.slice.name) }
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

    @discardableResult private func stopLive(by deadline: BootInstant) -> Bool {
        guard let live else { return true }
        context.live.update { $0 = nil }
        let hasEnded = live.thread.stop(by: deadline)
        if !hasEnded { leave("mqtt", [live.thread.life]) }
        state.update { $0.live = nil }
        return hasEnded
    }

    @discardableResult private func stopProxy(by deadline: BootInstant) -> Bool {
        guard let proxy else { return true }
        let hasEnded = proxy.thread.stop(by: deadline)
        if !hasEnded { leave("proxy", [proxy.thread.life]) }
        state.update { $0.proxy = nil }
        return hasEnded
    }

    // MARK: Threads that hang

    /// The heartbeat of the live output, or of the abandoned one that prevents a new one.
    var liveWord: Heartbeat.Word? {
        if let live { return live.thread.life.word }
        return LiveSlice(configuration) == nil ? nil : left("mqtt").last?.word
    }

    /// The reports of the live outputs, by name.
    var outputs: [String: OutputReport] { live.map { ["mqtt": $0.output.report] } ?? [:] }

    /// The heartbeat of the source's run, or of the abandoned run that prevents a new one.
    private func word(_ name: SourceName) -> Heartbeat.Word? {
        if let run = source(name) { return run.thread.life.word }
        let isOff = context.board.schedule.state.value?.off[name] != nil
        if isOff || context.board.resting.value[name] != nil { return nil }
        return left(name.rawValue).last?.word
    }

    /// The heartbeat of the uploader, or of the abandoned one that prevents a new one.
    var uploadsWord: Heartbeat.Word? {
        if let uploads { return uploads.uploading.life.word }
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

    /// Returns and publishes why no run of a part is started: too many hang; nil if not so many.
    ///
    /// Each start may leave one more hung thread behind; this limits recoveries, reloads and
    /// restarts by people together. The health timer retries (`apply`), and the failure is reported
    /// once.
    func tooManyHang<Value>(_ part: String, _ board: Publisher<Value>?) -> Failure? {
        let left = left(part)
        guard left.count > PartHealth.recoveries, let call = left.last?.word.call else {
            return nil
        }
        let failure = Failure(
            "\(part): not started, \(left.count) earlier starts of it hang, the last in \(call)"
        )
        report(failure, board)
        return failure
    }
}
