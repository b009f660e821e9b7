// Records of the user's programs, which are told when they are on the disk.

/// What a giver of records was told.
final class Promise: @unchecked Sendable {
    // Unchecked because a simulated world has one thread.
    private unowned let device: Device
    private let serials: [Int]
    private let stream: Int

    init(_ device: Device, _ serials: [Int], _ stream: Int) {
        self.device = device
        self.serials = serials
        self.stream = stream
    }

    /// Taken from here on: a crash may not cost them.
    ///
    /// What was refused was never there.
    func answer(_ error: (any Error)?) {
        let count = serials.count
        if error == nil {
            device.account.uncertain[stream, default: 0] -= count
        } else {
            let refused = Set(serials)
            device.account.taken[stream]?.removeAll { refused.contains($0) }
            // A commit whose sync failed may have landed, and its records be found by the next start.
            if device.account.hasFailedSync {
                device.account.mayHaveLanded[stream, default: 0] += count
            }
            device.account.uncertain[stream, default: 0] -= count
        }
    }
}

extension Device {
    /// Notes records that were given and not answered yet.
    func promise(_ serials: [Int], _ stream: Int) -> Promise {
        for serial in serials { account.take(serial, stream) }
        return Promise(self, serials, stream)
    }
}
