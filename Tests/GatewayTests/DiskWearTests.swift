import Foundation
import Host
import Support
import Testing

@testable import Daemon
@testable import Status

/// Disk wear from the kernel's counters: sysfs as on a Pi, with a card of two partitions.
@Suite struct DiskWearTests {
    private let folder = TemporaryFolder()

    /// A card of 32 GB; its second partition is 179:2.
    private func card(stat: String) throws -> SystemFiles {
        let disk = folder.path + "/sys/devices/platform/mmc_host/mmc0/block/mmcblk0"
        let part = disk + "/mmcblk0p2"
        let numbers = folder.path + "/sys/dev/block"
        for path in [part, numbers] {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true
            )
        }
        let files = [
            disk + "/stat": stat, disk + "/size": "62333952\n", part + "/partition": "2\n",
            part + "/stat": "1 1 1 1 1 1 1 1 1 1 1\n", part + "/size": "1000\n",
        ]
        for (path, text) in files { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }
        for (number, path) in ["179:0": disk, "179:2": part] {
            try FileManager.default.createSymbolicLink(
                atPath: numbers + "/" + number,
                withDestinationPath: path
            )
        }
        return SystemFiles(root: folder.path)
    }

    private func moment(hours: Int64) -> BootInstant {
        BootInstant(nanoseconds: hours * 3_600_000_000_000)
    }

    private static let counted =
        "   70167    12360 10187010    36070   147791    65287  2929687    30900        0    21188    71471\n"

    @Test(arguments: [2, 0] as [UInt])
    func card_lastsAsLongAsItsSizeManyTimesOver(_ minor: UInt) throws {
        let files = try card(stat: Self.counted)
        let wear = try #require(
            StatusReport.DiskFigures(
                DeviceNumber(179 << 8 | minor),
                own: 500_000_000,
                since: moment(hours: 12),
                at: moment(hours: 24),
                files
            )
        )
        #expect(wear.name == "mmcblk0")
        #expect(wear.sizeBytes == 31_914_983_424)
        #expect(wear.writtenBytes == 2_929_687 * 512)
        // 1.5 GB per day in all, 1 GB of them by the gateway.
        #expect(wear.bytesADay == 1_499_999_744)
        #expect(wear.ownBytesADay == 1_000_000_000)
        #expect(wear.enduranceBytes == 3_191_498_342_400)
        #expect(wear.years == 5.8)
    }

    @Test func firstHour_hasNoPace() throws {
        let files = try card(stat: Self.counted)
        let start = BootInstant(nanoseconds: 20_000_000_000)
        let early = BootInstant(nanoseconds: 3_599_000_000_000)
        let wear = try #require(
            StatusReport.DiskFigures(
                DeviceNumber(179 << 8 | 2),
                own: 1,
                since: start,
                at: early,
                files
            )
        )
        #expect(wear.bytesADay == nil)
        #expect(wear.ownBytesADay == nil)
        #expect(wear.years == nil)
        #expect(wear.writtenBytes > 0)
        // Booted an hour ago, started later.
        let later = BootInstant(nanoseconds: 3_600_000_000_000)
        let next = try #require(
            StatusReport.DiskFigures(
                DeviceNumber(179 << 8 | 2),
                own: 1,
                since: start,
                at: later,
                files
            )
        )
        #expect(next.bytesADay != nil)
        #expect(next.ownBytesADay == nil)
    }

    @Test(arguments: [
        "", "1 2 3", "a b c d e f g h", "1 1 1 1 1 1 99999999999999999999 1", "1 1 1 1 1 1 -5 1",
    ])
    func countsThatAreNone_areNotShown(_ stat: String) throws {
        let files = try card(stat: stat)
        #expect(
            StatusReport.DiskFigures(
                DeviceNumber(179 << 8 | 2),
                own: 0,
                since: moment(hours: 0),
                at: moment(hours: 2),
                files
            )
                == nil
        )
    }

    @Test func fileSystemInMemory_isNoDisk() {
        let nothing = SystemFiles(root: folder.path)
        #expect(
            StatusReport.DiskFigures(
                DeviceNumber(27),
                own: 0,
                since: moment(hours: 0),
                at: moment(hours: 2),
                nothing
            )
                == nil
        )
        #expect(DeviceNumber(of: folder.path + "/none") == nil)
    }

    /// The figures of this machine's disk, if the tests are on one.
    @Test func ownDisk_isTheOneThatTheKernelNames() throws {
        let device = try #require(DeviceNumber(of: folder.path))
        guard FileManager.default.fileExists(atPath: device.block + "/stat") else { return }
        let now = SystemClock().now()
        let wear = try #require(
            StatusReport.DiskFigures(device, own: 0, since: moment(hours: 0), at: now)
        )
        #expect(wear.sizeBytes > 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: "/sys/class/block")
        #expect(names.contains(wear.name))
    }
}
