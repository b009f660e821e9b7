// The write rate of the disk below the state directory, and how long the disk lasts at that rate.
import Configuration
import Host
import Setup

/// The bytes written to a disk since the boot, by all programs and by this one.
package struct DiskWear: Sendable, Equatable {
    /// How many times a disk can be filled before it wears out.
    ///
    /// Flash takes some hundred to a thousand writes; a small synced write costs several times its
    /// size.
    private static let fillings: Int64 = 100
    /// The time before which a rate means nothing.
    private static let leastTime = Duration.seconds(3600)
    private static let day = Duration.days(1)

    /// The kernel's name, such as `mmcblk0`.
    let name: String
    let size: Int64
    /// Bytes since the boot.
    let written: Int64
    /// Bytes per day; nil in the first hour.
    let pace: Int64?
    /// Bytes per day that this program writes.
    let ownPace: Int64?

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
        self.name = String(name)
        size = count * 512
        self.written = written
        pace = Self.pace(written, in: now - BootInstant(nanoseconds: 0))
        ownPace = Self.pace(own, in: now - start)
    }

    /// The bytes that can be written before the disk wears out, estimated from its size.
    var endurance: Int64 { size * Self.fillings }

    /// The years until then at this rate.
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
