// The part of the status that is read from a disk.
import Host
import Queue

/// Figures from the database as of its last commit, from disks and from /proc.
struct StoredFigures: Sendable {
    let at: BootInstant
    let statistics: [StreamStatistics]
    let traffic: [DayTraffic]
    let losses: [LossEntry]
    let setAside: [SetAside]
    let process: ProcessFigures
    /// Problems of the card or stick that was inspected last.
    let card: CardReport.Problems
    let databaseBytes: Int64
    let freeBytes: Int64
    /// The size of the whole file system.
    let totalBytes: Int64
    /// nil if the state directory is not on a disk.
    let wear: DiskWear?

    /// Reads all figures; may wait for the disk.
    init(
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
        card = CardReport.Problems.read(in: configuration.runtimeDirectory)
        let path = configuration.databasePath
        databaseBytes = FileSpace.size(path) + FileSpace.size(path + "-wal")
        freeBytes = FileSpace.free(configuration.stateDirectory) ?? 0
        totalBytes = FileSpace.total(configuration.stateDirectory) ?? 0
        let own = process.writtenBytes
        wear = DeviceNumber(of: configuration.stateDirectory)
            .flatMap { DiskWear($0, own: own, since: start, at: now) }
    }
}
