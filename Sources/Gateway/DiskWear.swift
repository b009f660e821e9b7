// How fast the disk below the state directory is written, and how long it lasts at that pace.
import Configuration
import Host

/// What a disk was asked to write since the boot, by all programs and by this one.
struct DiskWear: Sendable, Equatable {
    /// How many times its size a disk takes.
    ///
    /// Flash takes some hundred to a thousand writes; small synced ones cost it several times what they hold.
    private static let fillings: Int64 = 100
    /// Before so much time a pace says nothing.
    private static let leastTime = Duration.seconds(3600)
    private static let day = Duration.days(1)

    /// As the kernel calls it: `mmcblk0`.
    let name: String
    let size: Int64
    /// Bytes since the boot.
    let written: Int64
    /// Bytes a day, in the first hour nil.
    let pace: Int64?
    /// Of these, what this program writes.
    let ownPace: Int64?

    /// `device`: that the files are on; `own`: bytes that this program wrote since it started.
    ///
    /// nil for what is no disk, as a file system in memory.
    init?(
        _ device: DeviceNumber,
        own: Int64,
        since start: BootInstant,
        at now: BootInstant,
        _ files: SystemFiles = SystemFiles()
    ) {
        let place = device.block
        guard let target = files.target(place) else { return nil }
        // The kernel looks ".." up where the link leads: from a partition to its disk.
        let isPart = files.exists(place + "/partition")
        let disk = isPart ? place + "/.." : place
        guard let written = files.writtenBytes(disk),
            let count = files.text(disk + "/size").flatMap({ Int64($0) }), count > 0,
            count < 1 << 50,
            let name = target.split(separator: "/").dropLast(isPart ? 1 : 0).last
        else { return nil }
        self.name = String(name)
        size = count * 512
        self.written = written
        pace = Self.pace(written, in: now - BootInstant(nanoseconds: 0))
        ownPace = Self.pace(own, in: now - start)
    }

    /// Bytes that it takes before it wears out, as far as its size tells.
    var endurance: Int64 { size * Self.fillings }

    /// How long it takes them at this pace.
    var years: Double? {
        pace.map { rounded(Double(endurance) / Double(max(1, $0)) / 365.25, 10) }
    }

    private static func pace(_ bytes: Int64, in time: Duration) -> Int64? {
        guard time >= leastTime else { return nil }
        return Int64(Double(bytes) * Double(day.milliseconds) / Double(time.milliseconds))
    }
}

extension StatusReport.DiskFigures {
    init(_ wear: DiskWear) {
        self.init(
            name: wear.name,
            sizeBytes: wear.size,
            writtenBytes: wear.written,
            bytesADay: wear.pace,
            ownBytesADay: wear.ownPace,
            enduranceBytes: wear.endurance,
            years: wear.years
        )
    }
}
