// The sources and the uploader: started for a configuration, and changed for the next one.
import Audio
import Host
import Queue
import Records
import StatusBoard
import Upload

/// The sources and uploading, brought into line with a configuration part by part.
final class Services: Sendable {
    /// What a part may take to end before it is left to itself.
    static let stopLimit = Duration.seconds(2)
    /// How long a change waits for the one before it to end.
    private static let turnLimit = Duration.seconds(5)

    private struct State: Sendable {
        var configuration: Configuration
        var sources: [SourceName: SourceRun] = [:]
        var uploads: Uploads?
        /// By part: the threads of earlier runs that were left to themselves.
        var left: [String: [Heartbeat]] = [:]
        /// The server or bucket that has accepted this device since the start.
        var acceptedBy: String?
        /// Why nothing may be collected, as it was read from the state directory last.
        var whyNot: String?
        var isStopped = false
    }

    private let context: ServiceContext
    private let state: StateBox<State>
    /// Held while something is started or stopped: one change at a time.
    private let turn: Turn
    private let whenEnrolled: @Sendable () -> Void

    /// Nothing runs yet.
    ///
    /// `whenEnrolled`: to `apply` the configuration again, on a thread that may wait.
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

    /// Why nothing is collected yet; nil where it is.
    ///
    /// From memory: the health timer asks, and the disk may hang.
    var whyNotCollecting: String? { state.value.whyNot }

    /// The same as the disk says it now.
    private static func readWhyNotCollecting(_ state: State) -> String? {
        if let target = state.configuration.upload.target, state.acceptedBy == target { return nil }
        return state.configuration.whyNotCollecting
    }

    /// A source as the health timer sees it.
    func part(
        _ name: SourceName,
        _ board: GatewayBoard,
        _ watch: SourceMonitor
    ) -> Supervisor.Part {
        Supervisor.Part(
            name: name.rawValue,
            word: { self.word(name) },
            ask: { self.source(name)?.check() },
            advice: "it hangs again and again: unplug it for a moment",
            failed: { failure, since in
                board.sources[name]?.failed(failure)
                watch.isAway(name, since: since)
            },
            recover: { self.replace(name) },
            isBack: { self.source(name)?.outlet.endTrial() }
        )
    }

    // MARK: Changes

    /// Starts, stops and restarts what this configuration says differently; returns the names of that.
    ///
    /// What cannot be started is an error, and is tried again at the next call.
    @discardableResult func apply(_ configuration: Configuration) -> [String] {
        let changed: [String]? = turn.take {
            guard !state.value.isStopped else { return [] }
            state.update { $0.configuration = configuration }
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
        // The change may have mended what failed.
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

    private func changeSources() -> [SourceName] {
        let now = state.value
        let why = Self.readWhyNotCollecting(now)
        state.update { $0.whyNot = why }
        context.board.whyNotCollecting.update { $0 = why }
        var wanted: [SourceName: SourceSlice] = [:]
        var resting: [SourceName: String] = [:]
        for name in SourceName.allCases {
            if let slice = SourceSlice(name, now.configuration) {
                if let why { resting[name] = why } else { wanted[name] = slice }
            } else {
                resting[name] = "disabled in the configuration"
            }
        }
        let leaving = now.sources.filter { $0.value.slice != wanted[$0.key] }
        stop(Array(leaving.keys), by: SystemClock().now() + Self.stopLimit)
        context.board.resting.update { [resting] in $0 = resting }
        // While audio is switched off, missing sound is no gap.
        if !now.configuration.audio.isEnabled { context.queue.remember("audio", "off") }
        let coming = wanted.keys.filter { source($0) == nil }
        for name in coming { start(wanted[name]) }
        return SourceName.allCases.filter { leaving.keys.contains($0) || coming.contains($0) }
    }

    private func start(_ slice: SourceSlice?, isOnTrial: Bool = false) {
        guard let slice else { return }
        let board = context.board.sources[slice.name]
        if tooManyHang(slice.name.rawValue, board) { return }
        attempt(slice.name.rawValue, board) {
            let run = try SourceRun(slice, context, isOnTrial: isOnTrial)
            state.update { $0.sources[slice.name] = run }
        }
    }

    /// Tells why something could not be started: it would look as it did when it last ran.
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

    /// False where the board says so already: what is tried again and again is told once.
    @discardableResult
    private func tell<Value>(_ failure: Failure, _ board: Publisher<Value>?) -> Bool {
        if case .error(failure, _)? = board?.state { return false }
        board?.failed(failure)
        return true
    }

    /// Starts one source anew, without touching the others; returns why that was not possible.
    ///
    /// Waits until the source has let go of its device, at most `stopLimit`.
    func restart(_ name: SourceName) -> String? {
        if let why = context.board.resting.value[name] {
            return "\(name.rawValue) does not run: \(why)"
        }
        let isDone = restart(name, within: Self.stopLimit, isOnTrial: false)
        guard let isDone else { return "something else is being started or stopped, and hangs" }
        return isDone ? nil : "\(name.rawValue) could not be started; `waypost status` says why"
    }

    /// Abandons a run of a source that hangs, and starts another.
    func replace(_ name: SourceName) { _ = restart(name, within: .zero, isOnTrial: true) }

    /// nil when another change did not end in time.
    private func restart(_ name: SourceName, within limit: Duration, isOnTrial: Bool) -> Bool? {
        turn.take(within: Self.turnLimit) {
            guard !state.value.isStopped, let run = source(name) else { return false }
            stop([name], by: SystemClock().now() + limit)
            start(run.slice, isOnTrial: isOnTrial)
            return source(name) != nil
        }
    }

    /// Abandons an uploader that hangs, and starts another.
    func replaceUploads() {
        turn.take(within: Self.turnLimit) {
            guard !state.value.isStopped else { return }
            stopUploads(by: SystemClock().now())
            startUploads()
        }
    }

    // MARK: Stopping

    /// Stops everything for good; false if something hangs, and was left to itself.
    @discardableResult func stop(by deadline: BootInstant) -> Bool {
        // All are asked to end before this waits for the turn.
        let now = state.update { state in
            state.isStopped = true
            return state
        }
        for run in now.sources.values { run.raise() }
        now.uploads?.raise()
        let hasEnded = turn.take(within: deadline - SystemClock().now()) { endAll(by: deadline) }
        // The change that has the turn hangs: the sources are stopped all the same, but not in order.
        return hasEnded ?? (endAll(by: deadline) && false)
    }

    private func endAll(by deadline: BootInstant) -> Bool {
        let sourcesEnded = stop(SourceName.allCases, by: deadline)
        return stopUploads(by: deadline) && sourcesEnded
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

    /// Of the run; of the last one that hangs where none is started because of it.
    private func word(_ name: SourceName) -> Heartbeat.Word? {
        if let run = source(name) { return run.life.word }
        return context.board.resting.value[name] == nil ? left(name.rawValue).last?.word : nil
    }

    /// The same of the uploader.
    var uploadsWord: Heartbeat.Word? {
        if let uploads { return uploads.word }
        return configuration.upload.target == nil ? nil : left("upload").last?.word
    }

    private func leave(_ part: String, _ lives: [Heartbeat]) {
        let hanging = lives.filter { !$0.hasEnded }
        state.update { $0.left[part, default: []] += hanging }
        let calls = hanging.map { "\($0.word.call)" }.joined(separator: ", ")
        context.log.warning("left to itself", ["part": part, "in": calls])
    }

    /// Those of earlier runs of a part that hang to this day.
    private func left(_ part: String) -> [Heartbeat] {
        state.update { state in
            state.left[part]?.removeAll(where: \.hasEnded)
            return state.left[part] ?? []
        }
    }

    /// True, and told, where a part is not to be started now.
    ///
    /// Each start may leave one more thread behind: recoveries, reloads and people together leave a few at most. The health
    /// timer has it tried again (`apply`), and it is told once.
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
