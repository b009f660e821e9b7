// The part of the status that is read from a disk.
package import Host
package import Queue
package import Setup

/// Figures from the database as of its last commit, from disks and from /proc.
package struct StoredFigures: Sendable {
    package let at: BootInstant
    package let statistics: [StreamStatistics]
    package let traffic: [DayTraffic]
    package let losses: [LossEntry]
    package let setAside: [SetAside]
    package let process: ProcessFigures
    /// Problems of the card or stick that was inspected last.
    package let card: CardProblems
    package let databaseBytes: Int64
    package let freeBytes: Int64
    /// The size of the whole file system.
    package let totalBytes: Int64
    /// nil if the state directory is not on a disk.
    package let wear: DiskWear?

    /// Reads all figures; may wait for the disk.
    package init(
        _ queue: Queue,
        _ configuration: Configuration,
        since start: BootInstant,
        at now: BootInstant
    ) {
        at = now
        statistics = queue.statistics()
        traffic = (try? queue.traffic()) ?? []
        losses = (try? queue.losses()) ?? []
        setAside = queue.setAside
        process = ProcessFigures()
        card = CardProblems.read(in: configuration.runtimeDirectory)
        let path = configuration.databasePath
        databaseBytes = FileSpace.size(path) + FileSpace.size(path + "-wal")
        freeBytes = FileSpace.free(configuration.stateDirectory) ?? 0
        totalBytes = FileSpace.total(configuration.stateDirectory) ?? 0
        let own = process.writtenBytes
        wear = DeviceNumber(of: configuration.stateDirectory)
            .flatMap { DiskWear($0, own: own, since: start, at: now) }
    }
}
