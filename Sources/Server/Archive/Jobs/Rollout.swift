// Decides how a version of settings spreads over a group: without clock, disk or thread.
package import Host

/// A rollout of settings to a group of devices in stages.
///
/// The next stage begins when every device of the one before has kept the version for two of its
/// intervals. One device that fails halts all of it. Times are milliseconds since 1970.
package struct Rollout: Codable, Sendable, Equatable {
    package enum Status: String, Codable, Sendable {
        case running, done, halted, stopped
    }

    /// A change to make in the transaction that stores the rollout.
    package enum Action: Sendable, Equatable {
        case give(device: String, version: Int64)
        /// Unless the device has answered the version.
        case withdraw(device: String, version: Int64)
    }

    /// The devices of one step, by their ids.
    package struct Observation: Sendable {
        /// A device that was never in contact is absent.
        package var contacts: [String: RolloutDevice.Contact] = [:]
        /// A device that was never given settings is absent.
        package var answers: [String: RolloutDevice.Answer] = [:]

        package init() {}
    }

    package let group: String
    /// The devices that have the version after each stage, cumulative; the last is all.
    package let stages: [Int]
    /// The current stage, from 0; the number of stages while only offline devices are left.
    package internal(set) var stage = 0
    package internal(set) var status = Status.running
    /// The time of the last change of the status.
    package internal(set) var changed: Int64
    /// The device that halted it, and why; "" unless it is halted.
    package internal(set) var culprit = ""
    package internal(set) var reason = ""
    /// Whether the alert about the halt is stored.
    var isReported = false
    package internal(set) var devices: [RolloutDevice]

    /// `newest`: each device's newest version of settings.
    init(_ group: String, _ ids: [String], _ stages: [Int], newest: [String: Int64], at now: Int64)
    {
        (self.group, self.stages, changed) = (group, stages, now)
        devices = ids.sorted().map { RolloutDevice($0, newest: newest[$0] ?? 0) }
    }

    /// Whether the server still has something to do for it.
    var isOpen: Bool { status == .running || status == .halted && !isReported }

    /// Whether it is running, and not only for devices that are offline.
    var isInStages: Bool { status == .running && stage < stages.count }

    /// Returns the stages of a text such as `1,10%,100%` as cumulative counts for a group.
    ///
    /// A share is rounded up. Throws a `Failure` if a stage is wrong or the last one is not 100%.
    package static func stages(_ text: String, of count: Int) throws(Failure) -> [Int] {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        var stages: [Int] = []
        for part in parts {
            let digits = part.hasSuffix("%") ? part.dropLast() : part
            guard let number = Int(digits), number > 0, digits == part || number <= 100 else {
                throw Failure(
                    "\"\(printable(text))\" are not stages; use counts and shares, as 1,10%,100%"
                )
            }
            // Not number * count, which may be too large.
            stages.append(digits == part ? min(number, count) : (number * count + 99) / 100)
        }
        guard parts.last == "100%" else { throw Failure("the last stage has to be 100%") }
        guard stages == stages.sorted() else {
            let counts = stages.map { "\($0)" }.joined(separator: ", ")
            throw Failure("stages have to rise; of \(count) devices these are \(counts)")
        }
        return stages
    }

    // MARK: Steps

    /// Evaluates the devices, and returns what to do; nothing unless it is running.
    package mutating func step(_ seen: Observation, at now: Int64) -> [Action] {
        guard status == .running else { return [] }
        let before = devices
        for index in devices.indices {
            let id = devices[index].deviceId
            let (answer, contact) = (seen.answers[id], seen.contacts[id])
            devices[index].receive(answer, contact, isInStages: stage < stages.count, at: now)
        }
        let failed = zip(before, devices).filter { $0.state != .failed && $1.state == .failed }
        let absent = zip(before, devices).filter { $0.state == .given && $1.state == .apart }
        let withdrawn = absent.compactMap(\.1.withdrawal)
        guard let first = failed.first?.1 else { return withdrawn + advance(seen, at: now) }
        culprit = first.deviceId
        reason = first.reason + (failed.count > 1 ? "; \(failed.count - 1) more failed" : "")
        return withdrawn + end(.halted, at: now)
    }

    /// Stops it: no other device gets the version.
    package mutating func stop(at now: Int64) -> [Action] {
        status == .running || status == .halted ? end(.stopped, at: now) : []
    }

    /// Continues one that is halted or stopped, without the devices that failed.
    package mutating func resume(at now: Int64) {
        guard status == .halted || status == .stopped else { return }
        (status, changed, culprit, reason, isReported) = (.running, now, "", "", false)
    }

    /// Takes out a device that cannot be given the version.
    mutating func leaveOut(_ device: String, because reason: String) {
        guard let index = devices.firstIndex(where: { $0.deviceId == device }) else { return }
        devices[index].leave(reason)
    }

    /// Withdraws the version from the devices that have not answered it.
    private mutating func end(_ new: Status, at now: Int64) -> [Action] {
        (status, changed) = (new, now)
        var actions: [Action] = []
        for index in devices.indices where devices[index].isUnanswered {
            devices[index].state = .pending
            if let withdrawal = devices[index].withdrawal { actions.append(withdrawal) }
        }
        return actions
    }

    private func count(_ states: RolloutDevice.State...) -> Int {
        devices.filter { states.contains($0.state) }.count
    }

    private mutating func advance(_ seen: Observation, at now: Int64) -> [Action] {
        while stage < stages.count {
            let room = stages[stage] - count(.given, .held)
            let given = give(to: .pending, atMost: room, seen, at: now)
            guard given.isEmpty else { return given }
            // A stage that nobody has kept proves nothing, so it waits for a device.
            guard count(.given) == 0, count(.held) > 0 || count(.pending) == 0 else { return [] }
            stage += 1
        }
        for index in devices.indices where devices[index].state == .pending {
            devices[index].state = .apart
        }
        // As many at once as in the first stage: what holds for others need not hold for these.
        let room = (stages.first ?? 0) - count(.given)
        let given = give(to: .apart, atMost: room, seen, at: now)
        if count(.given, .apart) == 0 { (status, changed) = (.done, now) }
        return given
    }

    /// Gives the version to devices in a state that are online, first to those that are not late.
    private mutating func give(
        to state: RolloutDevice.State,
        atMost count: Int,
        _ seen: Observation,
        at now: Int64
    ) -> [Action] {
        let online = devices.indices.filter { index in
            let contact = seen.contacts[devices[index].deviceId]
            return devices[index].state == state && contact?.isOnline == true
        }
        let late = online.filter { seen.contacts[devices[$0].deviceId]?.isLate == true }
        let chosen = (online.filter { !late.contains($0) } + late).prefix(max(0, count))
        return chosen.map { index in
            devices[index].give(seen.contacts[devices[index].deviceId], at: now)
        }
    }
}
