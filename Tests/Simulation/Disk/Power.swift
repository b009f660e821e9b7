// Killed processes and power cuts.
internal import CSimulatedDisk

extension SimulatedDisk {
    /// The effect of a power cut on each unsynced write; the numbers are relative weights.
    package struct Harshness: Sendable {
        package var kept: UInt32
        package var lost: UInt32
        /// Each of its sectors is kept or lost.
        package var torn: UInt32

        package init(kept: UInt32, lost: UInt32, torn: UInt32) {
            self.kept = kept
            self.lost = lost
            self.torn = torn
        }

        package static let harsh = Harshness(kept: 1, lost: 1, torn: 1)
        /// Most writes had reached the card by themselves.
        package static let mild = Harshness(kept: 18, lost: 1, torn: 1)
        /// Only synced writes and names survive.
        package static let losingAll = Harshness(kept: 0, lost: 1, torn: 0)
    }

    /// Simulates `kill -9`: written bytes stay, and stay unsynced.
    ///
    /// All open handles are dead: their operations return SQLITE_IOERR and change nothing. The
    /// shared memory of WALs is freed.
    package func kill() {
        waypost_disk_kill(disk)
    }

    /// Simulates a power cut and a restart: like `kill`, and unsynced changes survive by chance.
    ///
    /// Of the name changes since the last sync of any file, a random prefix survives.
    package func crash(
        using generator: inout some RandomNumberGenerator,
        _ harshness: Harshness = .harsh
    ) {
        let parts = waypost_disk_harshness(
            kept: harshness.kept,
            lost: harshness.lost,
            torn: harshness.torn
        )
        waypost_disk_crash(disk, generator.next(), parts)
    }

    /// Cuts the power after that many more operations: from then on all fail and change nothing.
    ///
    /// `crash` decides what is left; `kill` and `restore` also turn the power on again.
    package func powerOff(after operations: Int) {
        waypost_disk_power_off_after(disk, Int64(operations))
    }

    package var isOff: Bool { waypost_disk_is_off(disk) }
}
