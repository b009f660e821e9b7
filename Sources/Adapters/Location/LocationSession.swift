// The state of the location source: handles gpsd's reports, stores fixes and updates the status
// board.
import Host
import Records
import StatusBoard

/// The state of the source without its connection; outlives each connection.
struct LocationSession {
    /// Silence after which the source reconnects.
    static let silenceLimit = Duration.seconds(30)
    /// Time without a position report after which gpsd is asked again; after twice this, the source
    /// reconnects.
    static let reportLimit = Duration.seconds(60)

    /// The kind of error the source is in, which determines what ends it.
    enum Fault: Equatable {
        /// Ends when gpsd names its receivers.
        case connection
        /// Ends with a GNSS receiver.
        case noReceiver
        /// Ends with a position report.
        case silence
    }

    /// The remedy for a silence.
    enum Remedy: Equatable {
        case none
        case ask
        case reconnect
    }

    private let settings: LocationSettings
    private let sink: any RecordSink
    private var meter: SourceMeter
    private var limit: FixLimit
    private var receivers = Receivers()
    /// The path of the GNSS receiver shown on the status board, and whether gpsd ever had it open.
    private var receiver = ""
    private var wasThere = false
    private(set) var trouble: Fault?
    private var failure: Failure?
    /// Why the last fix was not stored; nil if it was good.
    private var refusal: FixRefusal?
    private var refused = 0
    /// When unusable data last arrived.
    private var unusableAt = BootInstant(nanoseconds: 0)
    private var reportedDropped = 0
    /// A position report arrived on this connection.
    private(set) var hasReported = false
    private var hasAsked = false
    /// gpsd 3.22 opens a GNSS receiver that is plugged in while clients watch only when one of them
    /// asks again.
    private var mustAsk = false
    /// When to ask again for a lost receiver: a loose plug is back before gpsd can open it.
    private var askAt: BootInstant?
    private var asks = 0
    /// After this many requests, waits for gpsd instead of asking forever for a receiver that was
    /// removed.
    private static let maxAsks = 5
    private var heardAt = BootInstant(nanoseconds: 0)
    private var reportedAt = BootInstant(nanoseconds: 0)

    init(settings: LocationSettings, sink: any RecordSink, board: Publisher<SourceReport>) {
        self.settings = settings
        self.sink = sink
        meter = SourceMeter(device: "\(settings.gpsd)", board: board)
        limit = FixLimit(interval: settings.interval, minDistance: settings.minDistance)
        meter.loading()
    }

    // MARK: The connection

    mutating func connected(_ now: BootInstant) {
        receivers.connected()
        hasReported = false
        hasAsked = false
        heardAt = now
        reportedAt = now
        if trouble == nil { report("connected, no report yet", now) }
    }

    /// Handles a connection that could not be made, or ended.
    mutating func failed(_ error: any Error) {
        fail(.connection, (error as? Failure) ?? Failure("\(settings.name): \(error)"))
    }

    /// Finishes open epochs at the end of a connection.
    mutating func disconnected(_ now: BootInstant) {
        for outcome in receivers.flush(now: now, isAll: true) { receive(outcome, now) }
    }

    mutating func restarted() { meter.restarted() }

    mutating func ended(_ now: BootInstant) { meter.flush(now) }

    /// Returns the time until something is due without a byte from gpsd; nil when only bytes
    /// matter.
    func delay(_ now: BootInstant) -> Duration? {
        let update = trouble == nil ? meter.updateDelay(now).map { now + $0 } : nil
        return [receivers.deadline, update, askAt].compactMap { $0 }.min().map {
            max(.zero, $0 - now)
        }
    }

    /// Does everything that is due now.
    mutating func update(_ now: BootInstant) {
        for outcome in receivers.flush(now: now) { receive(outcome, now) }
        if let askAt, now >= askAt {
            mustAsk = trouble == .noReceiver
            planToAsk(now)
        }
        // During an error, an update would clear it from the board.
        if trouble == nil { meter.update(now) }
    }

    /// Counts a line that was too long, or a position that libgps cannot read.
    mutating func drop(_ now: BootInstant) {
        heardAt = now
        meter.drop()
        isUnusable("its reports cannot be read", now)
    }

    /// Counts lines that were only partly readable; their positions are still used.
    mutating func count(damaged lines: Int) {
        if lines > 0 { meter.drop(lines) }
    }

    private mutating func isUnusable(_ reason: String, _ now: BootInstant) {
        unusableAt = now
        let name = receiver.isEmpty ? settings.name : "\(settings.name), \(receiver)"
        let failure = Failure(
            "\(name): nothing usable for a minute: \(reason); restart the GNSS receiver, "
                + "`gpspipe -w -n 20` shows what it sends"
        )
        meter.unusable(failure, at: now)
    }

    // MARK: Silence

    /// Checks how long gpsd has been silent; called by the health timer.
    mutating func checkHealth(_ now: BootInstant) -> Remedy {
        if let failure, meter.report.dropped != reportedDropped {
            reportedDropped = meter.report.dropped
            meter.failed(failure)
        }
        if now - heardAt >= Self.silenceLimit {
            if trouble != .noReceiver {
                fail(
                    .silence,
                    Failure(
                        "\(settings.name): silent for \(Self.seconds(now - heardAt)); is a GNSS receiver plugged in, is gpsd stopped? `gpspipe -w -n 5`"
                    )
                )
            }
            return .reconnect
        }
        // Unreadable data is reported with its own reason, and reconnecting does not help.
        guard trouble != .noReceiver, !meter.isUseless(at: now),
            now - reportedAt >= Self.reportLimit
        else { return .none }
        fail(
            .silence,
            Failure(
                "\(settings.name): no position for \(Self.seconds(now - reportedAt)); is it set up for this GNSS receiver? `gpspipe -w`"
            )
        )
        defer { hasAsked = true }
        guard hasAsked else { return .ask }
        return now - reportedAt >= Self.reportLimit * 2 ? .reconnect : .none
    }

    private static func seconds(_ duration: Duration) -> String {
        "\(duration.milliseconds / 1000) s"
    }

    // MARK: Reports

    /// Returns whether to ask gpsd for reports again; clears the request.
    mutating func takeWish() -> Bool {
        defer { mustAsk = false }
        return mustAsk
    }

    mutating func receive(_ report: GPSReport, from device: String, at stamp: Stamp) {
        heardAt = stamp.boot
        switch report {
        case .position(let position): receive(position, from: device, at: stamp)
        case .sky(let used): receivers.receive(sky: used, from: device, at: stamp.boot)
        case .receivers(let paths, let open): receive(receivers: paths, open: open, stamp.boot)
        case .receiver(let path, let isActive): receive(receiver: path, isActive, stamp.boot)
        case .other: break
        }
    }

    private mutating func receive(receivers paths: [String], open: [String], _ now: BootInstant) {
        guard let first = paths.first else {
            return missReceiver("has no GNSS receiver: plug one in")
        }
        // gpsd reports a reopened receiver only to a client that asks.
        if trouble == .noReceiver, let path = open.first {
            (receiver, wasThere) = (path, true)
            return report("GNSS receiver found, no report yet", now)
        }
        if !paths.contains(receiver) { (receiver, wasThere) = (first, false) }
        wasThere = wasThere || open.contains(receiver)
        if trouble == nil || trouble == .connection { report("waiting for the GNSS receiver", now) }
    }

    private mutating func receive(receiver path: String, _ isActive: Bool, _ now: BootInstant) {
        guard isActive else { return receive(lost: path, now) }
        if trouble == .noReceiver { mustAsk = true }
        // Ignores a second receiver while the first is followed.
        guard receivers.followed == nil else { return }
        (receiver, wasThere) = (path, true)
        if trouble != .silence { report("GNSS receiver found, no report yet", now) }
    }

    private mutating func receive(lost path: String, _ now: BootInstant) {
        receivers.lost(path)
        guard receiver.isEmpty || path == receiver else { return }
        if let other = receivers.followed {
            // The next report updates the board.
            (receiver, wasThere) = (other, true)
            return
        }
        missReceiver(
            wasThere
                ? "has lost the GNSS receiver \(path): plug it in again"
                : "cannot open the GNSS receiver \(path): is it plugged in?"
        )
        if askAt == nil { planToAsk(now) }
    }

    /// Schedules the next request: after 1, 3, 7, 15 and 31 s.
    private mutating func planToAsk(_ now: BootInstant) {
        askAt = trouble == .noReceiver && asks < Self.maxAsks ? now + .seconds(1 << asks) : nil
        asks += 1
    }

    private mutating func missReceiver(_ message: String) {
        fail(
            .noReceiver,
            Failure("\(settings.name) \(message); `gpspipe -w -n 5` shows what gpsd has")
        )
    }

    private mutating func receive(
        _ position: GPSReport.Position,
        from device: String,
        at stamp: Stamp
    ) {
        reportedAt = stamp.boot
        hasReported = true
        hasAsked = false
        (askAt, asks) = (nil, 0)
        receive(receivers.receive(position, from: device, at: stamp), stamp.boot)
        guard device == receivers.followed else { return }
        if !device.isEmpty { (receiver, wasThere) = (device, true) }
        describe(position, stamp.boot)
    }

    private mutating func receive(_ outcome: Outcome, _ now: BootInstant) {
        if let time = outcome.time { sink.record(time: time, isSettled: outcome.isSettled) }
        if let reason = outcome.refusal {
            refused += 1
            meter.drop()
            refusal = reason
            isUnusable(reason.message, now)
        }
        guard let fix = outcome.fix else { return }
        refusal = nil
        meter.usable()
        sink.record(place: fix)
        guard limit.admits(fix) else { return }
        if sink.accept(fix) { meter.admit(fix.stamp) } else { meter.drop() }
    }

    // MARK: The board

    private mutating func describe(_ position: GPSReport.Position, _ now: BootInstant) {
        if position.mode < 2 {
            refusal = nil
            // A GNSS receiver that has had no fix for a while is right to give none.
            if now - unusableAt >= Receivers.patience { meter.usable() }
        }
        if let refusal { return report("\(refusal.message): fixes not kept", now) }
        let satellites = receivers.satellites(at: now).map { ", \($0) satellites" } ?? ""
        let kept = refused > 0 ? ", \(refused) not kept" : ""
        let clock = position.time == nil && position.mode > 1 ? " without a time" : ""
        let doubt = position.time.flatMap { ReceiverTime.doubt($0) }.map { "; \($0)" } ?? ""
        switch position.mode {
        case 3: report("3D fix\(clock)\(satellites)\(kept)\(doubt)", now)
        case 2: report("2D fix\(clock)\(satellites)\(kept)\(doubt)", now)
        default: report("no fix\(satellites)\(kept)", now)
        }
    }

    private mutating func report(_ detail: String, _ now: BootInstant) {
        let address = "\(settings.gpsd)"
        let device = receiver.isEmpty ? address : "\(address) \(receiver)"
        let report = meter.report
        guard trouble != nil || report.detail != detail || report.device != device else { return }
        trouble = nil
        failure = nil
        meter.working(detail, device: device, now: now)
    }

    /// Publishes an error, once per reason.
    private mutating func fail(_ trouble: Fault, _ failure: Failure) {
        guard trouble != self.trouble || failure != self.failure else { return }
        self.trouble = trouble
        self.failure = failure
        reportedDropped = meter.report.dropped
        meter.failed(failure)
    }
}
