// Processes that die, and power that goes.
internal import CSimulatedDisk

extension SimulatedDisk {
    /// What a power cut does to each write that was not synced, in parts of their sum.
    package struct Harshness: Sendable {
        package var kept: UInt32
        package var lost: UInt32
        /// Each sector of it is kept or lost.
        package var torn: UInt32

        package init(kept: UInt32, lost: UInt32, torn: UInt32) {
            self.kept = kept
            self.lost = lost
            self.torn = torn
        }

        package static let harsh = Harshness(kept: 1, lost: 1, torn: 1)
        /// Most of it had gone to the card by itself.
        package static let mild = Harshness(kept: 18, lost: 1, torn: 1)
        /// Nothing but what was synced is left, of names as well.
        package static let losingAll = Harshness(kept: 0, lost: 1, torn: 0)
    }

    /// `kill -9`: what was written stays, and is still unsynced.
    ///
    /// All that was open is dead: its operations give SQLITE_IOERR and change nothing. The shared memory of
    /// journals is gone.
    package func kill() {
        waypost_disk_kill(disk)
    }

    /// The power goes and comes back: as `kill`, and what was not synced is up to chance.
    ///
    /// Of the names that came, went and changed since the last sync of any file, some first part survives.
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

    /// After so many more operations, in the midst of whatever then goes on, all of them fail and change nothing.
    ///
    /// Until `crash` says what is left; `kill` and `restore` turn it on again as well.
    package func powerOff(after operations: Int) {
        waypost_disk_power_off_after(disk, Int64(operations))
    }

    package var isOff: Bool { waypost_disk_is_off(disk) }
}
