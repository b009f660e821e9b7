// The audio source: turns a microphone's samples into encoded segments for the queue.
import Glibc
package import Host
package import Records
package import StatusBoard

/// Captures audio until stopped; recovers from device faults.
///
/// Reading and encoding share the thread, which wakes once per segment. Encoding a second takes
/// about ten milliseconds, and the device buffers up to four seconds. This thread never waits for
/// the disk.
package final class AudioAdapter: Source {
    private let settings: AudioSettings
    private let sink: any RecordSink
    private let board: Publisher<SourceReport>
    private let clock: any HostClock
    private let cards: AudioCards

    package init(
        settings: AudioSettings,
        sink: any RecordSink,
        board: Publisher<SourceReport>,
        clock: any HostClock,
        cards: AudioCards = AudioCards()
    ) {
        self.settings = settings
        self.sink = sink
        self.board = board
        self.clock = clock
        self.cards = cards
    }

    /// Does nothing: the source checks itself with each segment.
    package func checkHealth() {}

    /// The state that outlives devices and runs.
    private struct State {
        var meter: SourceMeter
        var recovery: CaptureRecovery
        let arrivals: DeviceArrivals
        /// The open device's name, and which channel is recorded if it has several.
        var device = ""
        var channel: Int?
        /// Indexes of the device to try first and of the open one.
        var first = 0
        var index = 0
        /// When the source last checked for a better device.
        var lookedAt: BootInstant
        /// Frames per second of the open device.
        var deviceRate = 0
        var signal: SignalMonitor
        /// At or before the start of the open device.
        var started: BootInstant
        var probation: Probation?
        /// A fault occurred and no audio has come since; a device that merely starts is not
        /// reported as working.
        var isFaulty = false
        var lastEnd: RunEnd?
        var gaps = GapEventLimit()
        var absent = Retry(CaptureRecovery.absentSteps)
        var broken = Retry(CaptureRecovery.brokenSteps)
    }

    /// The end of a run.
    private enum Ending {
        case stopped
        /// The window of its schedule has closed; `Services` stops the source, or extends it.
        case closed
        case fault(CaptureError, hasDelivered: Bool)
        /// A device that is preferred to the open one is available again.
        case better(Int)
    }

    /// Blocks until `stop` is raised.
    package func run(until stop: StopSignal) {
        var state = State(
            meter: SourceMeter(device: settings.devices.first ?? "default", board: board),
            recovery: CaptureRecovery(devices: settings.devices.count),
            arrivals: DeviceArrivals(folder: cards.deviceFolder),
            lookedAt: clock.now(),
            signal: SignalMonitor(),
            started: clock.now()
        )
        state.lastEnd = RunEnd(before: sink, at: clock.stamp())
        reportMissed(&state)
        while !stop.isRaised {
            if let closes = sink.window.closes, closes <= clock.now() {
                _ = stop.sleep(for: .seconds(1))
                continue
            }
            if !state.isFaulty { state.meter.loading() }
            var pause: Duration?
            do {
                pause = try hold(&state, until: stop)
            } catch {
                if !stop.isRaised { state.meter.restarted() }
                state.isFaulty = true
                state.meter.failed((error as? Failure) ?? Failure("audio: \(error)"))
                state.lastEnd?.fails(at: clock.stamp(), "\(error)")
                if state.lastEnd == nil {
                    state.lastEnd = RunEnd(stamp: clock.stamp(), reason: "\(error)")
                }
                pause = state.absent.next()
            }
            // The device must be closed here: an unplugged one keeps its number while it is open.
            if let pause, !stop.isRaised, state.arrivals.wait(alongside: stop, limit: pause) {
                state.absent.succeeded()
            }
        }
        state.meter.flush(clock.now())
    }

    /// Opens a device and captures from it until another one must be opened; returns the pause
    /// before that.
    private func hold(_ state: inout State, until stop: StopSignal) throws -> Duration? {
        if let refusal = sink.soundRefusal { throw refusal }
        state.started = clock.now()
        var pcm = try open(&state, stop.life)
        while true {
            switch try capture(&pcm, &state, until: stop) {
            case .stopped, .closed: return nil
            case .better(let index):
                state.first = index
                state.recovery.returns(to: index, at: clock.now())
                return nil
            case .fault(let cause, let hasDelivered):
                let fault = hasDelivered ? cause : cause.atStart
                let step = climb(fault, pcm.device, &state)
                if step == .restart {
                    // A device that fails at every start must not make us spin.
                    if !hasDelivered { _ = stop.sleep(for: .milliseconds(200)) }
                    state.started = clock.now()
                    if (try? pcm.restart(until: stop)) != nil { continue }
                }
                let pause = next(after: step, fault, &state)
                // The next device may be absent; then this one is opened once more.
                return step == .next && !hasDelivered ? state.broken.next() : pause
            }
        }
    }

    /// Opens the first device that works, starting at `first` and wrapping around.
    private func open(_ state: inout State, _ life: Heartbeat) throws -> PCM {
        defer { state.first = 0 }
        return try PCM.first(of: settings.devices, from: state.first) { index in
            let pcm = try open(settings.devices[index], life)
            if index != state.index { state.signal = SignalMonitor() }
            state.index = index
            return pcm
        }
    }

    private func open(_ device: String, _ life: Heartbeat) throws -> PCM {
        try PCM(
            device: device,
            rate: settings.rate,
            channel: settings.channel,
            wake: settings.segment,
            cards: cards,
            life: life
        )
    }

    /// Returns the recovery step for a fault, and publishes the fault.
    private func climb(
        _ fault: CaptureError,
        _ device: String,
        _ state: inout State
    ) -> CaptureRecovery.Step {
        let step = state.recovery.step(after: fault, of: state.index, at: clock.now())
        state.meter.restarted()
        if fault == .overrun { state.meter.overran() }
        state.isFaulty = true
        state.meter.failed(fault.failure(of: device, step: step))
        state.lastEnd?.fails(at: clock.stamp(), "\(device): \(fault.message)")
        let ran = clock.now() - state.started
        state.probation = Probation(after: fault, of: state.index, ran: ran) ?? state.probation
        return step
    }

    /// Sets the device to open next; returns the pause before that.
    private func next(
        after step: CaptureRecovery.Step,
        _ fault: CaptureError,
        _ state: inout State
    ) -> Duration? {
        switch step {
        case .restart, .reopen:
            state.first = state.index
            guard case .gone = fault else { return nil }
            return state.absent.next()
        case .next:
            state.first = (state.index + 1) % settings.devices.count
            return nil
        case .wait:
            return state.broken.next()
        }
    }

    /// Captures one run, from a start of the device to a fault or the stop.
    private func capture(
        _ pcm: inout PCM,
        _ state: inout State,
        until stop: StopSignal
    ) throws -> Ending {
        let capture = try Capture(
            settings: settings,
            device: pcm.device,
            deviceRate: pcm.shape.rate,
            sink: sink
        )
        let ending = Result { try record(&pcm, capture, &state, until: stop) }
        var rest: [Int16] = []
        pcm.finish(into: &rest)
        if case .success = ending, !capture.isFresh { try? pass(rest, capture, &state) }
        try? capture.end()
        if capture.refusedTail > 0 { state.meter.drop(capture.refusedTail) }
        if let end = capture.endStamp, !stop.isRaised {
            state.lastEnd = RunEnd(stamp: end, reason: reason(ending, pcm.device))
        }
        return try ending.get()
    }

    private func reason(_ ending: Result<Ending, any Error>, _ device: String) -> String {
        switch ending {
        case .success(.fault(let fault, _)): "\(device): \(fault.message)"
        case .success(.better(let index)): "back to \(settings.devices[index])"
        case .success(.stopped): "stopped"
        case .success(.closed): "the window closed"
        case .failure(let error): "\(error)"
        }
    }

    private func record(
        _ pcm: inout PCM,
        _ capture: Capture,
        _ state: inout State,
        until stop: StopSignal
    ) throws -> Ending {
        let shape = pcm.shape
        let started = state.started + clock.slewed()
        var liveness = Liveness(rate: shape.rate, period: shape.period, started: started)
        (state.device, state.deviceRate) = (pcm.device, shape.rate)
        state.signal.begin()
        if !state.isFaulty {
            state.meter.working("starting", device: pcm.device, now: clock.now())
        }
        while true {
            do {
                let fault = try hear(&pcm, capture, &liveness, &state, until: stop)
                if stop.isRaised { return .stopped }
                if capture.isOver { return .closed }
                if let fault { return .fault(fault, hasDelivered: capture.hasDelivered) }
            } catch let error as ALSAError {
                guard !stop.isRaised else { return .stopped }
                return .fault(CaptureError(error), hasDelivered: capture.hasDelivered)
            }
            if capture.isAtChunkEnd, let better = betterDevice(&state, clock.now(), stop.life) {
                return .better(better)
            }
        }
    }

    /// Waits for a segment's worth of audio and passes it on; returns a fault, if any.
    private func hear(
        _ pcm: inout PCM,
        _ capture: Capture,
        _ liveness: inout Liveness,
        _ state: inout State,
        until stop: StopSignal
    ) throws -> CaptureError? {
        let wanted = capture.missing
        let isReady = pcm.wait(for: wanted, alongside: stop.descriptor, limit: .seconds(1))
        let position = pcm.position(clock)
        if let position {
            let fault = liveness.check(captured: position.captured, at: position.steady)
            if let fault { return fault }
            // Samples after a pause must not be recorded without a gap: check the position again
            // first.
            guard !liveness.isInDoubt else {
                _ = stop.sleep(for: pcm.shape.patience)
                return nil
            }
            // A device may need a moment to start.
            if position.captured > 0 { capture.observe(position) }
        }
        var samples: [Int16] = []
        // On a stop, also reads the audio captured until then.
        let limit = stop.isRaised ? settings.rate * 4 : wanted
        if isReady || stop.isRaised { _ = try pcm.read(into: &samples, limit: limit) }
        state.channel = pcm.shape.channels > 1 ? pcm.channel : nil
        state.signal.hear(pcm.removeHeard(), rate: pcm.shape.rate)
        try pass(samples, capture, &state)
        // Ready without samples: an always readable descriptor must not make us spin.
        if isReady, samples.isEmpty { _ = stop.sleep(for: .milliseconds(20)) }
        let now = (position?.now ?? clock.stamp()).boot
        let steady = now + clock.slewed()
        if position == nil, let fault = liveness.check(captured: pcm.framesRead, at: steady) {
            return fault
        }
        let isFault = settings.silence == .report && state.signal.isSilent
        return isFault && state.recovery.treatsSilence(of: state.index, at: now) ? .silent : nil
    }

    /// Queues the segments that these samples complete; throws when the queue is full.
    private func pass(_ samples: [Int16], _ capture: Capture, _ state: inout State) throws {
        let (window, probation) = (sink.window, state.probation)
        let trusted = probation?.clip(window, of: state.index, started: state.started)
        let samples = capture.clip(samples, to: trusted ?? window)
        guard !samples.isEmpty else { return }
        if capture.begin() { reportGap(&state, capture) }
        for segment in try capture.receive(samples) {
            guard sink.accept(segment) else {
                state.meter.drop()
                capture.refused(segment)
                throw sink.soundRefusal
                    ?? Failure(
                        "audio: the queue is too far behind the microphone; is the disk slow?"
                    )
            }
            let now = clock.stamp()
            state.absent.succeeded()
            if capture.segments > 60 { state.broken.succeeded() }
            state.meter.admit(now)
            report(segment, &state, now.boot)
        }
    }

    /// Publishes the state of the source after a segment.
    private func report(_ segment: Segment, _ state: inout State, _ now: BootInstant) {
        if let trusted = state.probation?.end(of: state.index, started: state.started) {
            guard now >= trusted else { return }
            state.probation = nil
        }
        state.isFaulty = settings.silence == .report && state.signal.isDead
        if state.isFaulty {
            return state.meter.useless(SignalMonitor.failure(of: state.device), now: now)
        }
        state.meter.working(
            settings.detail(segment, state.signal, state.device, channel: state.channel),
            device: state.device,
            concern: settings.concern(
                state.device,
                deviceRate: state.deviceRate,
                clipped: state.signal.clipped
            ),
            now: now
        )
    }

    /// Returns a preferred device that can be opened again, if any.
    ///
    /// Checked at the end of a chunk, so that no chunk is cut short, and only if a card was plugged
    /// in or some time has passed: a device without a card of its own may come back without an
    /// event.
    private func betterDevice(
        _ state: inout State,
        _ now: BootInstant,
        _ life: Heartbeat
    ) -> Int? {
        guard state.index > 0,
            state.arrivals.haveCome() || now - state.lookedAt >= state.recovery.returnPause
        else { return nil }
        state.lookedAt = now
        return (0..<state.index).first { index in
            guard state.recovery.treatsSilence(of: index, at: now) else { return false }
            return (try? open(settings.devices[index], life).rate) != nil
        }
    }

    /// Reports the gap between two runs, as events or to the ledger.
    private func reportGap(_ state: inout State, _ capture: Capture) {
        guard let end = state.lastEnd, let start = capture.startStamp else { return }
        state.lastEnd = nil
        let (device, opens) = (state.device, sink.window.opens)
        let gaps = end.events(to: start, device: device, settings, opens: opens)
        for gap in gaps { report(gap, &state) }
    }

    /// Reports the audio that is missing from earlier windows.
    private func reportMissed(_ state: inout State) {
        for time in sink.missedAudio() where time.to.boot - time.from.boot > RunEnd.edge {
            let device = settings.devices.first ?? "default"
            let reason = "no audio came before the window closed"
            report(
                settings.gap(from: time.from, to: time.to, device: device, reason: reason),
                &state
            )
        }
    }

    private func report(_ gap: Event, _ state: inout State) {
        if state.gaps.takePermit(at: clock.now()) {
            sink.accept(gap)
        } else if let loss = gap.loss {
            // The queue reports the losses without an event in sum.
            sink.record(loss)
        }
    }
}
