// The part of the status that is read from the disk, and so may take long.
package import Host
package import Queue
package import Setup

/// Figures from the database (as of its last commit), the file system and /proc.
package struct StoredFigures: Sendable {
    let at: BootInstant
    let statistics: [StreamStatistics]
    let traffic: [DayTraffic]
    let losses: [LossEntry]
    let setAside: [SetAside]
    /// Problems of the card or stick that was inspected last.
    let card: CardFailures
    let daemon: StatusReport.Daemon
    /// Sizes and bytes written; the status board has the rest.
    let storage: StatusReport.Storage
    /// The size of the whole file system.
    let totalBytes: Int64
    /// nil if the state directory is not on a disk.
    let disk: StatusReport.DiskFigures?
    /// Bytes that are stored per day; 0 while that is not known.
    let bytesPerDay: Double

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
        card = CardFailures.read(in: configuration.runtimeDirectory)
        daemon = .measured()
        let (path, directory) = (configuration.databasePath, configuration.stateDirectory)
        let written = OwnProcess.writtenBytes() ?? 0
        storage = StatusReport.Storage(
            databaseBytes: FileSpace.size(path) + FileSpace.size(path + "-wal"),
            freeBytes: FileSpace.free(directory) ?? 0,
            writtenBytes: written,
            evictedRecords: statistics.reduce(0) { $0 + $1.evicted }
        )
        totalBytes = FileSpace.total(directory) ?? 0
        bytesPerDay = queue.bytesPerDay
        disk = DeviceNumber(of: directory).flatMap {
            .init($0, own: written, since: start, at: now)
        }
    }

    /// Returns for how many days there is room without an upload; nil within the first hour.
    ///
    /// Uploaded records make room for pending ones.
    func roomDays(_ storage: StatusReport.Storage, _ settings: StorageSettings) -> Double? {
        guard bytesPerDay > 0 else { return nil }
        let limits = settings.limits(total: totalBytes)
        let most = min(
            limits.maxSize / 100 * 98,
            storage.databaseBytes + self.storage.freeBytes - limits.criticalFree
        )
        let pending = statistics.reduce(0) { $0 + Int64($1.pendingBytes) }
        return rounded(min(3650, Double(max(0, most - pending)) / bytesPerDay), 10)
    }
}
