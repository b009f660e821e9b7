// The sound source: a microphone to encoded segments in the queue.
package import Board
internal import Glibc
package import Host
internal import Store

/// Captures until it is told to stop, whatever the device does meanwhile.
///
/// Reading and encoding share the thread, which wakes once a segment: encoding a second takes some ten
/// milliseconds, and the device's own buffer holds up to four seconds. Nothing on this thread waits for the disk.
package final class AudioAdapter: Sendable {
    /// A device that is not there costs one attempt to open it.
    private static let absentSteps: [Duration] =
        [.milliseconds(200), .seconds(1), .seconds(2), .seconds(4)]
    /// For some minutes at a pace that finds it soon after it works again, then less often.
    private static let brokenSteps =
        [.seconds(1), .seconds(2)] + [Duration](repeating: .seconds(4), count: 60) + [.seconds(30)]
    /// A better device that says nothing when it comes back (no card of its own) is tried so often.
    private static let returnPause = Duration.seconds(600)

    private let settings: AudioSettings
    private let sink: SoundSink
    private let board: Publisher<SourceReport>
    private let clock: any HostClock
    private let cards: SoundCards

    package init(
        settings: AudioSettings,
        sink: SoundSink,
        board: Publisher<SourceReport>,
        clock: any HostClock,
        cards: SoundCards = SoundCards()
    ) {
        self.settings = settings
        self.sink = sink
        self.board = board
        self.clock = clock
        self.cards = cards
    }

    /// What is known from one device and one run to the next.
    private struct State {
        var meter: SourceMeter
        var ladder: Ladder
        let arrivals: DeviceArrivals
        /// The device to try first, and the one that is open.
        var first = 0
        var index = 0
        /// When a better device was last looked for.
        var lookedAt: BootInstant
        /// Where the last run ended, and why.
        var lastEnd: (stamp: Stamp, reason: String)?
        var absent = Retry(AudioAdapter.absentSteps)
        var broken = Retry(AudioAdapter.brokenSteps)
    }

    /// How a run ended.
    private enum Ending {
        case stopped
        case fault(CaptureFault, hasDelivered: Bool)
        /// A device that is preferred to the one open can be opened again.
        case better(Int)
    }

    /// Blocks until `stop` is raised.
    package func run(until stop: StopSignal) {
        var state = State(
            meter: SourceMeter(device: settings.devices.first ?? "default", board: board),
            ladder: Ladder(devices: settings.devices.count),
            arrivals: DeviceArrivals(folder: cards.deviceFolder),
            lookedAt: clock.now()
        )
        while !stop.isRaised {
            state.meter.loading()
            do {
                try hold(&state, until: stop)
            } catch {
                state.meter.failed((error as? Failure) ?? Failure("audio: \(error)"))
                if state.lastEnd == nil { state.lastEnd = (clock.stamp(), "\(error)") }
                pause(state.absent.next(), &state, until: stop)
            }
        }
    }

    /// Waits, at most until a sound device is plugged in.
    private func pause(_ limit: Duration, _ state: inout State, until stop: StopSignal) {
        guard !stop.isRaised else { return }
        if state.arrivals.wait(alongside: stop, limit: limit) { state.absent.succeeded() }
        if !stop.isRaised { state.meter.restarted() }
    }

    /// Opens a device and captures from it until another one is to be opened.
    private func hold(_ state: inout State, until stop: StopSignal) throws {
        if let refusal = sink.refusal() { throw refusal }
        var pcm = try open(&state)
        while true {
            switch try capture(&pcm, &state, until: stop) {
            case .stopped: return
            case .better(let index):
                state.first = index
                return
            case .fault(let fault, let hasDelivered):
                guard climb(fault, hasDelivered, &pcm, &state, until: stop) else { return }
            }
        }
    }

    /// The first device that opens, from the one whose turn it is, then round the list.
    private func open(_ state: inout State) throws -> PCM {
        var problems: [Failure] = []
        let count = settings.devices.count
        for index in (0..<count).map({ (state.first + $0) % count }) {
            do {
                let pcm = try open(settings.devices[index])
                state.index = index
                state.first = 0
                return pcm
            } catch {
                problems.append(
                    (error as? Failure) ?? Failure("\(settings.devices[index]): \(error)")
                )
            }
        }
        state.first = 0
        throw Failure(
            problems.map(\.message).joined(separator: "; "),
            code: problems.compactMap(\.code).first
        )
    }

    private func open(_ device: String) throws -> PCM {
        try PCM(device: device, rate: settings.rate, wake: settings.segment, cards: cards)
    }

    /// Does what the ladder says about a fault; true when the same device goes on.
    private func climb(
        _ fault: CaptureFault,
        _ hasDelivered: Bool,
        _ pcm: inout PCM,
        _ state: inout State,
        until stop: StopSignal
    ) -> Bool {
        let step = state.ladder.step(after: fault, of: state.index, at: clock.now())
        state.meter.restarted()
        state.meter.failed(fault.failure(of: pcm.device, step: step))
        switch step {
        case .restart:
            if !hasDelivered, stop.sleep(for: .milliseconds(200)) { return false }
            do {
                try pcm.restart(until: stop)
                return true
            } catch {
                // It cannot be started where it is: it is opened anew.
                state.first = state.index
            }
        case .reopen:
            state.first = state.index
            // One that comes and goes must not make us spin.
            if case .gone = fault { pause(state.absent.next(), &state, until: stop) }
        case .next: state.first = (state.index + 1) % settings.devices.count
        case .wait: pause(state.broken.next(), &state, until: stop)
        }
        return false
    }

    /// One run: from a start of the device to a fault or the stop.
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
        if let end = capture.endStamp, !stop.isRaised {
            state.lastEnd = (end, reason(ending, pcm.device))
        }
        return try ending.get()
    }

    private func reason(_ ending: Result<Ending, any Error>, _ device: String) -> String {
        switch ending {
        case .success(.fault(let fault, _)): "\(device): \(fault.words)"
        case .success(.better(let index)): "back to \(settings.devices[index])"
        case .success(.stopped): "stopped"
        case .failure(let error): "\(error)"
        }
    }

    private func record(
        _ pcm: inout PCM,
        _ capture: Capture,
        _ state: inout State,
        until stop: StopSignal
    ) throws -> Ending {
        var samples: [Int16] = []
        let shape = pcm.shape
        var liveness = Liveness(rate: shape.rate, period: shape.period, outputRate: settings.rate)
        state.meter.working("starting", device: pcm.device, now: clock.now())
        while true {
            let isReady = pcm.wait(
                for: capture.missing,
                alongside: stop.descriptor,
                limit: .seconds(1)
            )
            let now = clock.stamp()
            let position = pcm.position()
            // A device may take a moment to begin.
            if let position, position.captured > 0 {
                capture.observe(captured: position.captured, age: position.age, now: now)
            }
            samples.removeAll(keepingCapacity: true)
            do {
                // What came until the stop belongs to the sound, too.
                let limit = stop.isRaised ? settings.rate * 4 : capture.missing
                if isReady || stop.isRaised { _ = try pcm.read(into: &samples, limit: limit) }
            } catch {
                return stop.isRaised
                    ? .stopped : .fault(CaptureFault(error), hasDelivered: capture.hasDelivered)
            }
            try pass(samples, capture, &state)
            if stop.isRaised { return .stopped }
            let captured = position?.captured ?? pcm.framesRead
            if let fault = liveness.check(captured: captured, at: now.boot) {
                return .fault(fault, hasDelivered: capture.hasDelivered)
            }
            if liveness.isSilent(with: samples),
                state.ladder.treatsSilence(of: state.index, at: now.boot)
            {
                return .fault(.silent, hasDelivered: capture.hasDelivered)
            }
            if capture.isAtChunkEnd, let better = betterDevice(&state, now.boot) {
                return .better(better)
            }
            // Ready for nothing: a descriptor that is always readable must not make us spin.
            if isReady, samples.isEmpty { _ = stop.sleep(for: .milliseconds(20)) }
        }
    }

    /// Hands over the segments that these samples complete; throws when the queue is full.
    private func pass(_ samples: [Int16], _ capture: Capture, _ state: inout State) throws {
        guard !samples.isEmpty else { return }
        if capture.begin() { reportGap(&state, capture) }
        for segment in try capture.take(samples[...]) {
            guard sink.accept(segment) else {
                state.meter.drop()
                capture.refused(segment)
                throw sink.refusal()
                    ?? Failure(
                        "audio: the queue is too far behind the microphone; is the disk slow?"
                    )
            }
            let now = clock.stamp()
            state.absent.succeeded()
            if capture.segments > 60 { state.broken.succeeded() }
            state.meter.admit(now)
            state.meter.working(detail(segment, capture, state), now: now.boot)
        }
    }

    /// A device that comes before the open one in the list and can be opened again.
    ///
    /// Looked for at the end of a chunk, so that no chunk is cut short, when a card has been plugged in or ten
    /// minutes have passed.
    private func betterDevice(_ state: inout State, _ now: BootInstant) -> Int? {
        guard state.index > 0,
            state.arrivals.haveCome() || now - state.lookedAt >= Self.returnPause
        else { return nil }
        state.lookedAt = now
        return (0..<state.index).first { index in
            guard state.ladder.treatsSilence(of: index, at: now) else { return false }
            return (try? open(settings.devices[index]).rate) != nil
        }
    }

    /// An event for what was not recorded between two runs.
    private func reportGap(_ state: inout State, _ capture: Capture) {
        guard let (end, reason) = state.lastEnd, let start = capture.startStamp else { return }
        state.lastEnd = nil
        let lost = max(.zero, start.boot - end.boot)
        // What is missing, in chunks as they would have been.
        let step = max(1, (settings.chunk - settings.overlap).milliseconds)
        let chunks = max(1, (lost.milliseconds + step - 1) / step)
        let frames = Int64((lost.inSeconds * Double(settings.rate)).rounded())
        sink.event(
            Event(
                .gap,
                source: "audio",
                detail: [
                    ("lost_s", .number(Double(lost.milliseconds) / 1000)),
                    ("lost_frames", .integer(frames)), ("from", .time(end.wall)),
                    ("to", .time(start.wall)), ("device", .text(settings.devices[state.index])),
                    ("reason", .text(reason)),
                ],
                stamp: start,
                loss: Loss(.gap, .audio, records: chunks, from: end, to: start)
            )
        )
    }

    private func detail(_ segment: Segment, _ capture: Capture, _ state: State) -> String {
        let device = settings.devices[state.index]
        let silence = capture.silentSegments * Int(settings.segment.milliseconds)
        guard silence < Liveness.silenceSeconds * 1000 else {
            return "only digital silence from \(device): muted, or a dead microphone?"
        }
        let level = SoundLevel.decibels(segment.meanSquare).rounded()
        return "\(settings.rate / 1000) kHz mono, \(Int(level)) dBFS"
    }
}
