// Carries out the steps of a history.
internal import Host
internal import Live
internal import Queue
internal import Records
internal import SimulatedDisk

extension World {
    func receive(_ step: Step) throws {
        let device = devices[step.device % devices.count]
        var chance = Chance(step.draw)
        switch step.kind {
        case .wait: try pass(Self.span(step.amount, &chance))
        case .night: try pass(plan.retention.milliseconds + 120_000)
        case .gap: try sleep(Self.span(step.amount, &chance) * 10)
        case .clockSync, .clockNote, .clockStep, .clockRight: try runClock(step, device, &chance)
        case .sightings, .beacons, .fixes, .events, .put, .lossNoted:
            readRecords(step, device, &chance)
        case .soundStart, .sound, .soundHole, .soundEnd: try takeAudio(step, device, &chance)
        case .mark: markSound(device, &chance)
        case .surveyStart, .surveyStop: runSurvey(step, device, &chance)
        case .sync, .health, .maintain, .requeue, .drop, .resend, .limits, .shrink, .declare, .stop,
            .kill,
            .reboot:
            try runCommand(step, device, &chance)
        case .powerCut, .powerOff, .full, .failWrites, .failSyncs, .failReads, .failOlderReads,
            .readOnly,
            .faultsEnd,
            .damage, .cut, .clip, .empty, .snapshot, .rollback, .copy, .replace, .squeeze, .crowd:
            try takeFault(step, device, &chance)
        case .job: try runJobs(device, &chance)
        case .settings: try runSettings(device, &chance)
        case .table: server.mode = .table
        case .good:
            server.mode = .good
            server.changeVersion()
        case .stumble: server.mode = .losesRequests
        case .outage: server.mode = .failing
        case .oversized:
            server.mode = .tooLarge
            server.limit = chance.number(1...3)
        case .poison:
            server.mode = .poison
            server.limit = chance.number(1...6)
        case .server:
            server.mode = chance.isOne(in: 3) ? .good : chance.one(of: ServerMode.drawn)
            server.limit = chance.number(1...6)
            log?("  server: \(server.mode) \(server.limit)")
        }
    }

    /// Draws a time span in milliseconds, up to some days.
    private static func span(_ amount: Int, _ chance: inout Chance) -> Int64 {
        let unit = chance.one(of: [100, 1000, 1000, 60_000, 600_000, 3_600_000])
        return Int64(unit * (amount + 1))
    }

    // MARK: Time

    /// Advances the time; programs do what becomes due.
    func pass(_ span: Int64) throws {
        var left = span
        for part in [1100, 60_000, .max] as [Int64] where left > 0 {
            let some = min(left, part)
            try sleep(some)
            for device in devices { try device.turn() }
            left -= some
        }
    }

    /// Suspends the board: nothing runs.
    private func sleep(_ span: Int64) throws {
        now += span
        for device in devices { device.clock.advance(by: .milliseconds(span)) }
    }

    private func runClock(_ step: Step, _ device: Device, _ chance: inout Chance) throws {
        let offset: Int64
        switch step.kind {
        case .clockStep:
            offset = Int64(chance.scale(0...4_000_000)) * (chance.isOne(in: 2) ? 1 : -1)
            device.clock.stepWall(to: WallTime(milliseconds: now + offset))
        case .clockRight: device.clock.stepWall(to: WallTime(milliseconds: now))
        case .clockSync:
            device.clock.stepWall(to: WallTime(milliseconds: now))
            try record(device, synced: true)
        default: try record(device, synced: false)
        }
    }

    private func record(_ device: Device, synced: Bool) throws {
        let stamp = device.clock.stamp()
        let isNoted: Void? = try? device.queue?.perform { writer in
            try writer.recordClock(stamp, synced: synced)
            try writer.pruneClockMap()
        }
        guard synced else { return }
        // If the disk refused, the note may or may not be there.
        if isNoted != nil {
            truth.boots[device.boot].syncs.append(stamp.boot.milliseconds)
        } else {
            truth.boots[device.boot].doubtful.append(stamp.boot.milliseconds)
        }
        truth.boots[device.boot].isVouchedFor = true
    }

    // MARK: Records

    private func readRecords(_ step: Step, _ device: Device, _ chance: inout Chance) {
        guard let queue = device.queue else { return }
        switch step.kind {
        case .lossNoted:
            let stamp = device.clock.stamp()
            device.account.record(step.amount + 1, Stream.beacons.number)
            let time = EffortAudit.Time(boot: device.boot, boottime: device.now.boottime)
            device.effort.noted.append((Stream.beacons.number, time))
            queue.record(
                Loss(.missed, .beacons, records: Int64(step.amount + 1), from: stamp, to: stamp)
            )
        case .beacons:
            // A beacon disappears and another one appears.
            let place = chance.number(0...(truth.identities.count - 1))
            var identity = truth.identities[place]
            identity.address = BluetoothAddress(value: chance.next())
            truth.identities.append(identity)
            record(.failed("gpsd"), .location, device)
        case .put: put(step.amount % 12 + 1, device, queue, &chance)
        default:
            for _ in 0...step.amount { readRecord(step.kind, device, queue, &chance) }
        }
    }

    private func known(_ stream: Stream, _ device: Device) -> Known {
        let (boottime, wall) = device.now
        return Known(
            stream: stream.number,
            boot: device.boot,
            boottime: boottime,
            wall: wall,
            truth: now
        )
    }

    private func readRecord(
        _ kind: Step.Kind,
        _ device: Device,
        _ queue: Queue,
        _ chance: inout Chance
    ) {
        let stamp = device.clock.stamp()
        switch kind {
        case .sightings:
            var record = known(.beacons, device)
            let newest = truth.identities.count
            record.beacon = chance.number(max(0, newest - plan.beacons)...(newest - 1))
            let serial = truth.add(record)
            device.account.receive(serial, Stream.beacons.number)
            let sighting = Sighting(
                identity: truth.identities[record.beacon],
                rssi: -40 - serial % 50,
                data: Serial.bytes(serial, padding: chance.scale(0...plan.padding)),
                stamp: stamp
            )
            if queue.accept(sighting) { device.live?.accept(sighting) }
        case .fixes:
            let serial = truth.add(known(.location, device))
            device.account.receive(serial, Stream.location.number)
            record(.listening, .location, device)
            let fix = Fix(
                stamp: stamp,
                mode: .threeDimensional,
                latitude: Double(serial) / 1e7,
                longitude: Double(serial * 2) / 1e7
            )
            queue.record(place: fix)
            if queue.accept(fix) { device.live?.accept(fix) }
        // One in four of the program's own records is one of its health.
        case _ where truth.records.count % 4 == 0:
            let serial = truth.add(known(.health, device))
            device.account.receive(serial, Stream.health.number)
            let health = DeviceHealth(serial: serial, stamp: stamp)
            if queue.accept(health) { device.live?.accept(health) }
        default:
            let serial = truth.add(known(.events, device))
            device.account.receive(serial, Stream.events.number)
            queue.accept(
                Event(
                    .sourceLost,
                    source: "sim",
                    detail: [("n", .integer(Int64(serial)))],
                    stamp: stamp
                )
            )
        }
    }

    private func put(_ count: Int, _ device: Device, _ queue: Queue, _ chance: inout Chance) {
        guard let name = device.userStreams.isEmpty ? nil : chance.one(of: device.userStreams).name,
            let stream = queue.streams[name: name]?.stream
        else { return }
        var records: [UserRecord] = []
        var serials: [Int] = []
        var marks: [KnownMark] = []
        var bytes = 0
        for _ in 0..<count where bytes < queue.putBytes {
            var record = known(stream, device)
            if chance.isOne(in: 3) { record.given = now - Int64(chance.scale(0...100_000)) }
            let serial = truth.add(record)
            serials.append(serial)
            mark(of: record, stream: name).map { marks.append($0) }
            let filler = Serial.text(serial, count: chance.scale(0...(plan.padding * 2)))
            bytes += filler.utf8.count
            records.append(
                UserRecord(
                    stream: name,
                    stamp: device.clock.stamp(),
                    given: record.given.map { WallTime(milliseconds: $0) },
                    members: Array("\"n\":\(serial),\"text\":\"\(filler)\"".utf8)
                )
            )
        }
        let box = device.promise(serials, stream.number, marks)
        self.marks += marks
        queue.put(records) { [records, live = device.live] error in
            if error == nil { live?.accept(records) }
            box.answer(error)
        }
    }

    // MARK: Surveys

    private func runSurvey(_ step: Step, _ device: Device, _ chance: inout Chance) {
        guard let queue = device.queue else { return }
        if step.kind == .surveyStart {
            try? queue.startSurvey("open")
            return
        }
        guard let end = (try? queue.endSurvey())?.end else { return }
        let number = Stream.surveys.number
        var record = known(.surveys, device)
        if (end.stamp.boot.milliseconds, end.stamp.wall.milliseconds) != (
            record.boottime, record.wall
        ) {
            // It ended earlier, and a crash came in between: the end time is unknown here.
            record.given = .min
        }
        let serial = truth.add(record)
        device.account.receive(serial, number)
        let report = "{\"track\":{},\"beacons\":[],\"n\":\(serial)}"
        let isDone = (try? queue.perform({ try $0.finishSurvey(report: report) })) != nil
        // If the disk refused, it is computed again later and is another record then.
        if !isDone { device.account.taken[number]?.removeAll { $0 == serial } }
        device.account.uncertain[number, default: 0] -= 1
    }
}

extension DeviceHealth {
    /// Identifies itself by a count of pending records.
    fileprivate init(serial: Int, stamp: Stamp) {
        self.init(
            stamp: stamp,
            state: "healthy",
            reasons: [],
            version: "sim",
            uptime: 0,
            freeBytes: 0,
            databaseBytes: 0
        )
        pending = ["n": serial]
        oldestPending = stamp
        if !serial.isMultiple(of: 8) { nextSync = stamp.advanced(by: .seconds(60)) }
    }
}
