// Audio steps: runs that begin, continue and end, and segments that are missing.
internal import Host
internal import Queue
internal import Records
internal import SimulatedDisk

extension World {
    func takeAudio(_ step: Step, _ device: Device, _ chance: inout Chance) throws {
        guard let queue = device.queue else { return }
        switch step.kind {
        case .soundStart:
            if let open = device.sound { queue.end(run: open.run.id) }
            record(.listening, .audio, device)
            device.sound = begin(device, queue, &chance)
        case .soundEnd:
            guard let open = device.sound else { return }
            queue.end(run: open.run.id)
            record(step.amount % 2 == 0 ? .scheduledOff("duty") : .failed("gone"), .audio, device)
            device.sound = nil
        default: try record(step.amount % 20 + 1, device, queue)
        }
    }

    private func begin(_ device: Device, _ queue: Queue, _ chance: inout Chance) -> AudioSource {
        let chunk = chance.number(2...Self.chunkLimit)
        let overlap = chance.number(0...min(2, chunk - 1))
        let run = AudioRun(
            id: queue.newRunID(),
            codec: .wav,
            rate: 10 * chance.number(1...20),
            device: "hw:\(device.number)",
            chunkSegments: chunk,
            // A chunk that is gone between two others must not have joined them (waypost.toml(5), audio.chunk).
            overlapSegments: plan.holdsSound ? min(overlap, chunk / 2) : overlap
        )
        queue.begin(run)
        truth.runs += 1
        return AudioSource(
            run: run,
            number: truth.runs,
            next: device.clock.stamp(),
            truth: now,
            drift: Int64(chance.number(-200...200))
        )
    }

    /// Advances the time while audio arrives, two seconds at a time.
    private func record(_ count: Int, _ device: Device, _ queue: Queue) throws {
        for _ in 0..<count {
            guard let source = device.sound, device.queue === queue, !device.disk.isOff else {
                return
            }
            let stamp = device.clock.stamp()
            let moment = (device.now, now)
            try pass(2000)
            guard device.sound != nil else { return }
            try accept(source, stamp, moment, device, queue)
        }
    }

    private func accept(
        _ source: AudioSource,
        _ stamp: Stamp,
        _ moment: (device: (boottime: Int64, wall: Int64), truth: Int64),
        _ device: Device,
        _ queue: Queue
    ) throws {
        if queue.soundRefusal != nil {
            // Its source ends the run and reports the gap itself.
            queue.end(run: source.run.id)
            record(.failed("space"), .audio, device)
            device.sound = nil
            return
        }
        let frames = source.run.rate * 2
        let serial = truth.add(
            KnownSegment(
                run: source.number,
                index: source.index,
                overlap: source.run.overlapSegments,
                frames: frames,
                boot: device.boot,
                boottime: moment.device.boottime,
                wall: moment.device.wall,
                truth: moment.truth
            )
        )
        device.sound?.index += 1
        device.account.addSegment(serial)
        queue.accept(
            Segment(
                run: source.run.id,
                frames: frames,
                start: stamp,
                meanSquare: 0.01,
                data: Serial.bytes(serial, padding: frames * 2 - 4)
            )
        )
        try device.turn()
    }
}
