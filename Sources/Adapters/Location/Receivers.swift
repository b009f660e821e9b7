// The receivers behind one gpsd: the epochs of each apart, and the one whose fixes are kept.
import Host
import Records

/// What came of an epoch of a receiver.
struct Outcome {
    /// A boot time and the right wall time then.
    var time: Stamp?
    /// nil for a receiver that is not followed, and where there was no fix.
    var epoch: Epoch?
}

/// What came of a fix of the receiver that is followed.
enum Epoch: Equatable {
    case good(Fix)
    case refused(FixRefusal)
}

/// Follows the best of the receivers; reports of two never make one fix.
///
/// Another one is followed when it has the better mode, when the one followed has no fix any more, or when it is
/// clearly better for a while: two that are as good as each other must not take turns, metres apart.
struct Receivers {
    /// gpsd itself has four devices as it is built.
    static let limit = 8
    /// Some receivers report once in ten seconds.
    static let patience = Duration.seconds(12)
    /// One that says that it has no fix is waited for so long: the sky under a bridge comes back.
    static let shadow = Duration.seconds(5)
    /// How long each fix must be clearly better than those of the receiver that is followed.
    static let proof = Duration.seconds(10)
    /// Satellites are told with the fix or a few seconds before; not all skies name them.
    static let skyLife = Duration.seconds(30)

    private struct Receiver {
        var merger = EpochMerger()
        var time = ReceiverTime()
        var judge = FixEvaluator()
        var sky: (used: Int, at: BootInstant)?
        /// Its newest fix that was believed; nil when it has none any more.
        var good: Fix?
        /// Since when its fixes are clearly better.
        var betterSince: BootInstant?
        var heardAt: BootInstant
    }

    private var all: [String: Receiver] = [:]
    /// The path of the receiver whose fixes are kept; empty for one that gpsd does not name.
    private(set) var followed: String?
    /// The one whose time counts, and when it told it last.
    private var timekeeper: (device: String, at: BootInstant)?

    /// When the next open epoch is over.
    var deadline: BootInstant? { all.values.compactMap(\.merger.deadline).min() }

    /// Satellites that the followed receiver uses.
    func satellites(at now: BootInstant) -> Int? {
        followed.flatMap { all[$0] }.flatMap { Self.satellites(of: $0, at: now) }
    }

    private static func satellites(of receiver: Receiver, at now: BootInstant) -> Int? {
        receiver.sky.flatMap { now - $0.at < skyLife ? $0.used : nil }
    }

    // MARK: Reports

    /// A report that came at `stamp`; gives what came of an epoch that it ends.
    mutating func take(
        _ position: GPSReport.Position,
        from device: String,
        at stamp: Stamp
    ) -> Outcome {
        var receiver = all[device] ?? new(at: stamp.boot)
        receiver.heardAt = stamp.boot
        if position.mode < 2, position.time == nil { receiver.time.forget() }
        let merged = receiver.merger.add(position, at: stamp)
        if position.mode < 2, let good = receiver.good, stamp.boot - good.stamp.boot > Self.shadow {
            receiver.good = nil
        }
        all[device] = receiver
        if !isHeard(followed, at: stamp.boot) { followed = device }
        return merged.map { judge($0, of: device, stamp.boot) } ?? Outcome()
    }

    /// Whether the time of a receiver counts: that of the one followed, or of one other while it tells none.
    ///
    /// The best place may be that of a receiver which is a week rollover behind. Two others must not take turns, either.
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

    /// A sky that names no device is that of the receiver followed.
    mutating func take(sky used: Int, from device: String, at now: BootInstant) {
        let path = device.isEmpty ? followed ?? "" : device
        var receiver = all[path] ?? new(at: now)
        receiver.sky = (used, now)
        all[path] = receiver
    }

    /// What came of epochs that nothing more will be added to by `now`; `isAll`: of all that are open.
    mutating func flush(now: BootInstant, isAll: Bool = false) -> [Outcome] {
        all.keys.sorted().compactMap { device in
            let merged = isAll ? all[device]?.merger.finish() : all[device]?.merger.flush(now: now)
            return merged.map { judge($0, of: device, now) }
        }
    }

    /// A connection begins: what the one before left unfinished is over.
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

    /// gpsd has closed a receiver; another one with a fix is followed in its place.
    mutating func lost(_ device: String) {
        all[device]?.good = nil
        guard device == followed else { return }
        followed =
            all.filter { $0.value.good != nil }
            .max { Self.isWorse($0.value.good, $1.value.good) }?.key
    }

    /// Room for one more: the one that was not heard for longest is forgotten.
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

    private mutating func judge(
        _ merged: MergedReport,
        of device: String,
        _ now: BootInstant
    ) -> Outcome {
        guard merged.position.mode > 1 else {
            all[device]?.time.forget()
            return Outcome()
        }
        guard let fix = merged.fix else { return refused(.placeless, device) }
        if let reason = all[device]?.judge.judge(fix, now: now) { return refused(reason, device) }
        // The time of a fix that is refused is no evidence.
        let time = all[device]?.time.add(fix)
        return Outcome(
            time: isTimekeeper(device, at: now, isTelling: time != nil) ? time : nil,
            epoch: choose(fix, of: device)
        )
    }

    private func refused(_ reason: FixRefusal, _ device: String) -> Outcome {
        Outcome(epoch: device == followed ? .refused(reason) : nil)
    }

    /// A good fix; nil if its receiver is not followed.
    private mutating func choose(_ fix: Fix, of device: String) -> Epoch? {
        guard var receiver = all[device] else { return nil }
        defer { all[device] = receiver }
        var fix = fix
        fix.satellites = Self.satellites(of: receiver, at: fix.stamp.boot)
        receiver.good = fix
        if device != followed, isToBeFollowed(fix, &receiver.betterSince) { followed = device }
        if device == followed { receiver.betterSince = nil }
        return device == followed ? .good(fix) : nil
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

    /// Half the error; where that is not known, three satellites more.
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
