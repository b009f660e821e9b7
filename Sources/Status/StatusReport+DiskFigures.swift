// The write rate of the disk below the state directory, and how long the disk lasts at that rate.
import Configuration
import Host

extension StatusReport {
    /// The disk below the state directory; its rates are null in the first hour.
    package struct DiskFigures: Codable, Sendable, Equatable {
        /// The kernel's name, such as `mmcblk0`.
        package var name: String
        package var sizeBytes: Int64
        /// Bytes written by all programs since the boot.
        package var writtenBytes: Int64
        @OrNull package var bytesADay: Int64?
        /// The part of them that Waypost writes.
        @OrNull package var ownBytesADay: Int64?
        /// The bytes that can be written before it wears out, estimated from its size.
        package var enduranceBytes: Int64
        /// The years until then at this rate.
        @OrNull package var years: Double?
    }
}

extension StatusReport.DiskFigures {
    /// How many times a disk can be filled before it wears out.
    ///
    /// Flash takes some hundred to a thousand writes; a small synced write costs several times its
    /// size.
    private static let fillings: Int64 = 100
    /// The time before which a rate means nothing.
    private static let leastTime = Duration.seconds(3600)

    /// `device` holds the files; `own` are the bytes that this program has written since its start.
    ///
    /// Returns nil if the device is not a disk, such as a file system in memory.
    init?(
        _ device: DeviceNumber,
        own: Int64,
        since start: BootInstant,
        at now: BootInstant,
        _ files: SystemFiles = SystemFiles()
    ) {
        let place = device.block
        guard let target = files.target(place) else { return nil }
        // The kernel resolves ".." after the link: from a partition to its disk.
        let isPart = files.exists(place + "/partition")
        let disk = isPart ? place + "/.." : place
        guard let written = files.writtenBytes(disk),
            let count = files.text(disk + "/size").flatMap({ Int64($0) }), count > 0,
            count < 1 << 50,
            let name = target.split(separator: "/").dropLast(isPart ? 1 : 0).last
        else { return nil }
        let daily = Self.pace(written, in: now - BootInstant(nanoseconds: 0))
        let endurance = count * 512 * Self.fillings
        // In one call: Swift 6.0.3 crashes on an assignment to a wrapped property after it.
        self.init(
            name: String(name),
            sizeBytes: count * 512,
            writtenBytes: written,
            bytesADay: daily,
            ownBytesADay: Self.pace(own, in: now - start),
            enduranceBytes: endurance,
            years: daily.map { rounded(Double(endurance) / Double(max(1, $0)) / 365.25, 10) }
        )
    }

    private static func pace(_ bytes: Int64, in time: Duration) -> Int64? {
        guard time >= leastTime else { return nil }
        let day = Double(Duration.days(1).milliseconds)
        return Int64(Double(bytes) * day / Double(time.milliseconds))
    }
}
