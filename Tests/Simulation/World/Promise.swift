// Records of user programs, which are notified when their records are on the disk.

/// The acknowledgement that a program received for its records.
final class Promise: @unchecked Sendable {
    // Unchecked because a simulated world has one thread.
    private unowned let device: Device
    private let serials: [Int]
    private let stream: Int
    private let marks: [KnownMark]

    init(_ device: Device, _ serials: [Int], _ stream: Int, _ marks: [KnownMark]) {
        self.marks = marks
        self.device = device
        self.serials = serials
        self.stream = stream
    }

    /// Handles the answer: a crash must not lose acknowledged records.
    ///
    /// Refused records count as never given.
    func answer(_ error: (any Error)?) {
        let count = serials.count
        if error == nil {
            device.account.uncertain[stream, default: 0] -= count
            device.account.marks += marks
        } else {
            let refused = Set(serials)
            device.account.taken[stream]?.removeAll { refused.contains($0) }
            // A commit whose sync failed may have been written, and the next start may find its
            // records.
            if device.account.hasFailedSync {
                device.account.mayHaveLanded[stream, default: 0] += count
            }
            device.account.uncertain[stream, default: 0] -= count
        }
    }
}

extension Device {
    /// Registers records that were given but not yet acknowledged.
    func promise(_ serials: [Int], _ stream: Int, _ marks: [KnownMark] = []) -> Promise {
        for serial in serials { account.receive(serial, stream) }
        return Promise(self, serials, stream, marks)
    }
}
