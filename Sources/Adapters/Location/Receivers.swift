// Tracks the GNSS receivers behind one gpsd and chooses the one whose fixes are stored.
import Host
import Records

/// The result of one epoch of a receiver.
struct Outcome {
    /// A boot time and the right wall time then.
    var time: Stamp?
    /// The receiver has run for so long that it must know the leap seconds.
    var isSettled = false
    /// A good fix of the followed receiver.
    var fix: Fix?
    /// Why a fix of the followed receiver is rejected.
    var refusal: FixRefusal?
}

/// Follows the best GNSS receiver; never merges reports of two into one fix.
///
/// Switches to another receiver when that has the better mode, when the followed one loses its fix,
/// or when the other is clearly better for a while. Two equally good receivers must not alternate,
/// metres apart.
struct Receivers {
    /// gpsd by default supports four devices.
    static let limit = 8
    /// Time without a report after which a receiver counts as gone; some report every ten seconds.
    static let patience = Duration.seconds(12)
    /// How long to wait for a receiver that reports no fix: under a bridge the sky comes back.
    static let shadow = Duration.seconds(5)
    /// How long every fix must be clearly better than those of the followed receiver.
    static let proof = Duration.seconds(10)
    /// How long a satellite count is valid: SKY objects come with the fix or a few seconds before,
    /// and not all have a count.
    static let skyLife = Duration.seconds(30)
    /// Satellites send the leap seconds once in 12.5 minutes.
    static let settling = Duration.seconds(780)

    private struct Receiver {
        var merger = EpochMerger()
        var time = ReceiverTime()
        var evaluate = FixEvaluator()
        var sky: (used: Int, at: BootInstant)?
        /// Its newest believed fix; nil once it has lost its fix.
        var good: Fix?
        /// Since when its fixes have been clearly better.
        var betterSince: BootInstant?
        var heardAt: BootInstant
        /// Since when it has received satellites, which send the leap seconds every 12.5 minutes; nil
        /// before it did, and while it is unplugged.
        var heardSince: BootInstant?
    }

    private var all: [String: Receiver] = [:]
    /// The path of the receiver whose fixes are stored; empty if gpsd does not name it.
    private(set) var followed: String?
    /// The receiver whose time counts, and when it last gave a time.
    private var timekeeper: (device: String, at: BootInstant)?

    /// When the next open epoch times out.
    var deadline: BootInstant? { all.values.compactMap(\.merger.deadline).min() }

    /// The number of satellites that the followed receiver uses.
    func satellites(at now: BootInstant) -> Int? {
        followed.flatMap { all[$0] }.flatMap { Self.satellites(of: $0, at: now) }
    }

    private static func satellites(of receiver: Receiver, at now: BootInstant) -> Int? {
        receiver.sky.flatMap { now - $0.at < skyLife ? $0.used : nil }
    }

    // MARK: Reports

    /// Handles a report that arrived at `stamp`; returns the result of an epoch that it ends.
    mutating func receive(
        _ position: GPSReport.Position,
        from device: String,
        at stamp: Stamp
    ) -> Outcome {
        var receiver = all[device] ?? new(at: stamp.boot)
        receiver.heardAt = stamp.boot
        if position.mode >= 2 { receiver.heardSince = receiver.heardSince ?? stamp.boot }
        if position.mode < 2 { receiver.evaluate.lostFix(at: stamp.boot) }
        if position.mode < 2, position.time == nil { receiver.time.forget() }
        let merged = receiver.merger.add(position, at: stamp)
        if position.mode < 2, let good = receiver.good, stamp.boot - good.stamp.boot > Self.shadow {
            receiver.good = nil
        }
        all[device] = receiver
        invariant(all.count <= Self.limit, "the GNSS receivers are bounded")
        if !isHeard(followed, at: stamp.boot) { followed = device }
        return merged.map { evaluate($0, of: device, stamp.boot) } ?? Outcome()
    }

    /// Returns whether a receiver's time counts: that of the followed one, or of one other while
    /// that gives none.
    ///
    /// The best position may come from a receiver that is a week rollover behind. Two others must
    /// not alternate either.
    private mutating func isTimekeeper(
        _ device: String,
        at now: BootInstant,
        isTelling: Bool
    ) -> Bool {
        let keeper = timekeeper ?? (device: followed ?? device, at: now)
        timekeeper = keeper
        guard isTelling,
            device == followed || device == keeper.device || now - keeper.at >= Self.patience
        else { return false }
        timekeeper = (device, now)
        return true
    }

    /// Stores a satellite count; one without a device belongs to the followed receiver.
    mutating func receive(sky used: Int, from device: String, at now: BootInstant) {
        let path = device.isEmpty ? followed ?? "" : device
        var receiver = all[path] ?? new(at: now)
        receiver.sky = (used, now)
        all[path] = receiver
    }

    /// Returns the results of epochs that have timed out by `now`; of all open epochs if `isAll`.
    mutating func flush(now: BootInstant, isAll: Bool = false) -> [Outcome] {
        all.keys.sorted().compactMap { device in
            let merged = isAll ? all[device]?.merger.finish() : all[device]?.merger.flush(now: now)
            return merged.map { evaluate($0, of: device, now) }
        }
    }

    /// Drops unfinished epochs of the previous connection.
    mutating func connected() {
        for device in all.keys {
            all[device]?.merger = EpochMerger()
            all[device]?.time = ReceiverTime()
            all[device]?.good = nil
            all[device]?.sky = nil
        }
        followed = nil
        timekeeper = nil
    }

    /// Handles a receiver that gpsd has closed; follows another one with a fix.
    mutating func lost(_ device: String) {
        all[device]?.good = nil
        all[device]?.heardSince = nil
        guard device == followed else { return }
        followed =
            all.filter { $0.value.good != nil }
            .max { Self.isWorse($0.value.good, $1.value.good) }?.key
    }

    /// Returns a new receiver's state; at the limit, evicts the one not heard for longest.
    private mutating func new(at now: BootInstant) -> Receiver {
        if all.count >= Self.limit,
            let oldest = all.filter({ $0.key != followed }).min(by: {
                $0.value.heardAt < $1.value.heardAt
            })
        {
            all[oldest.key] = nil
        }
        return Receiver(heardAt: now)
    }

    // MARK: The choice

    private func isHeard(_ device: String?, at now: BootInstant) -> Bool {
        device.flatMap { all[$0] }.map { now - $0.heardAt < Self.patience } ?? false
    }

    private mutating func evaluate(
        _ merged: MergedReport,
        of device: String,
        _ now: BootInstant
    ) -> Outcome {
        guard merged.position.mode > 1 else {
            all[device]?.time.forget()
            return Outcome()
        }
        guard !merged.position.isSimulated else { return refused(.simulated, device) }
        guard let fix = merged.fix else { return refused(.placeless, device) }
        if let reason = all[device]?.evaluate.evaluate(fix, now: now) {
            return refused(reason, device)
        }
        // The time of a rejected fix is not evidence.
        let time = all[device]?.time.add(fix)
        return Outcome(
            time: isTimekeeper(device, at: now, isTelling: time != nil) ? time : nil,
            isSettled: all[device]?.heardSince.map { now - $0 >= Self.settling } ?? false,
            fix: choose(fix, of: device)
        )
    }

    private func refused(_ reason: FixRefusal, _ device: String) -> Outcome {
        Outcome(refusal: device == followed ? reason : nil)
    }

    /// Returns a good fix; nil if its receiver is not followed.
    private mutating func choose(_ fix: Fix, of device: String) -> Fix? {
        guard var receiver = all[device] else { return nil }
        defer { all[device] = receiver }
        var fix = fix
        fix.satellites = Self.satellites(of: receiver, at: fix.stamp.boot)
        receiver.good = fix
        if device != followed, isToBeFollowed(fix, &receiver.betterSince) { followed = device }
        if device == followed { receiver.betterSince = nil }
        return device == followed ? fix : nil
    }

    private func isToBeFollowed(_ fix: Fix, _ betterSince: inout BootInstant?) -> Bool {
        guard let rival = followed.flatMap({ all[$0]?.good }),
            fix.stamp.boot - rival.stamp.boot < Self.patience,
            fix.mode.rawValue <= rival.mode.rawValue
        else { return true }
        guard fix.mode == rival.mode, Self.isClearlyBetter(fix, than: rival) else {
            betterSince = nil
            return false
        }
        let since = betterSince ?? fix.stamp.boot
        betterSince = since
        return fix.stamp.boot - since >= Self.proof
    }

    /// Returns whether the error is at most half, or, if unknown, three satellites more are used.
    private static func isClearlyBetter(_ fix: Fix, than other: Fix) -> Bool {
        if let error = fix.horizontalAccuracy, let theirs = other.horizontalAccuracy {
            return error <= theirs / 2
        }
        guard let satellites = fix.satellites, let theirs = other.satellites else { return false }
        return satellites >= theirs + 3
    }

    private static func isWorse(_ left: Fix?, _ right: Fix?) -> Bool {
        let ranks = [left, right].map { ($0?.mode.rawValue ?? 0, -($0?.horizontalAccuracy ?? 1e9)) }
        return ranks[0] < ranks[1]
    }
}
