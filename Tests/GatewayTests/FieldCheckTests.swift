// The doctor's checks of a board, over folder trees of boards.
import Foundation
import Host
import Location
import Support
import Testing
import Upload

@testable import Daemon
@testable import Field
@testable import Setup
@testable import Status

@Suite struct FieldCheckTests {
    private final class Board {
        private let temporary = TemporaryFolder("run/waypost", "var/lib/waypost")
        var root: String { temporary.path }

        func put(_ path: String, _ text: String) throws {
            try temporary.write(text, to: path)
        }

        /// A serial port of a USB device, laid out like the kernel's.
        func plug(
            _ tty: String,
            _ interface: String,
            _ vendor: String,
            _ product: String,
            name: String = "USB-Serial Controller"
        ) throws {
            let usb =
                "/devices/platform/scb/fd500000.pcie/usb1/1-1/\(interface.prefix { $0 != ":" })"
            try put("/sys\(usb)/idVendor", vendor + "\n")
            try put("/sys\(usb)/idProduct", product + "\n")
            try put("/sys\(usb)/product", name + "\n")
            try put("/sys\(usb)/\(interface)/\(tty)/tty/\(tty)/dev", "188:0\n")
            try put("/sys/class/tty/console/dev", "5:1\n")
            try FileManager.default.createSymbolicLink(
                atPath: "\(root)/sys/class/tty/\(tty)",
                withDestinationPath: "../..\(usb)/\(interface)/\(tty)/tty/\(tty)"
            )
        }

        var adapters: SerialAdapters { SerialAdapters(SystemFiles(root: root)) }

        var configuration: Configuration {
            var configuration = Configuration()
            configuration.runtimeDirectory = root + "/run/waypost"
            configuration.location.gpsd.port = freePort()  // Not this machine's gpsd.
            return configuration
        }
        var input: DoctorInput { input(configuration, nil) }

        func input(_ configuration: Configuration, _ report: StatusReport?) -> DoctorInput {
            DoctorInput(configuration, environment: [:], version: "t", root: root, report: report)
        }

        func state(_ part: String) -> String? {
            BoardCheck(input: input).findings.first { $0.part == part }?.state.rawValue
        }
    }

    // MARK: Adapters

    /// Debian's rules: the four families commented out or absent, others given to gpsd.
    private static let rules = """
        # ATTRS{idVendor}=="067b", ATTRS{idProduct}=="2303", SYMLINK+="gps%n", TAG+="systemd", ENV{SYSTEMD_WANTS}="gpsdctl@%k.service"
        ATTRS{idVendor}=="1546", ATTRS{idProduct}=="01a7", SYMLINK+="gps%n", TAG+="systemd", ENV{SYSTEMD_WANTS}="gpsdctl@%k.service"

        """

    @Test(arguments: [
        ("067b", "2303", "PL2303"), ("0403", "6001", "FTDI"), ("10c4", "ea60", "CP210x"),
        ("1a86", "7523", "CH340"),
    ])
    func adapterUnknownToGPSD_isNamedByPort_untilARuleFits(
        vendor: String,
        product: String,
        chip: String
    ) throws {
        let board = Board()
        try board.put("/usr/lib/udev/rules.d/60-gpsd.rules", Self.rules)
        try board.put("/etc/udev/rules.d/README", "")
        try board.plug("ttyUSB0", "1-1.3:1.0", vendor, product)
        let adapter = try #require(board.adapters.unclaimed(knownToGPSD: []).first)
        #expect(
            adapter
                == SerialAdapter(
                    path: "/dev/ttyUSB0",
                    port: "1-1.3",
                    chip: chip,
                    product: "USB-Serial Controller"
                )
        )
        #expect(board.adapters.unclaimed(knownToGPSD: ["/dev/ttyUSB0"]).isEmpty)
        let written = try GNSSRule.write("1-1.3", root: board.root)
        #expect(written.device == "/dev/ttyUSB0")
        #expect(board.adapters.unclaimed(knownToGPSD: []).isEmpty)
        // A rule is written once, and other ports stay separate.
        #expect(try GNSSRule.write("1-1.3", root: board.root).device == nil)
        _ = try GNSSRule.write("1-1.4:1.1", root: board.root)
        let text = try String(
            contentsOfFile: board.root + "/etc/udev/rules.d/65-waypost-gnss.rules",
            encoding: .utf8
        )
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("SUBSYSTEM==\"tty\"") }
        #expect(lines.count == 2)
        #expect(lines.first?.contains("KERNELS==\"1-1.3:1.0\"") == true)
        #expect(lines.last?.contains("KERNELS==\"1-1.4:1.1\"") == true)
    }

    @Test func adaptersThatAreNone_areNotNamed() throws {
        let board = Board()
        try board.put("/usr/lib/udev/rules.d/60-gpsd.rules", Self.rules)
        // A u-blox receiver that gpsd uses, a board with native USB, and a serial port without USB.
        try board.plug("ttyACM0", "1-1.1:1.0", "1546", "01a7")
        try board.plug("ttyACM1", "1-1.2:1.0", "2e8a", "0005")
        try board.put("/sys/class/tty/ttyAMA0/dev", "204:64")
        #expect(board.adapters.unclaimed(knownToGPSD: []).isEmpty)
        let finding = LocationCheck(input: board.input).findings.first
        #expect(finding?.next?.contains("--write-rule") == false)
    }

    @Test func secondInterface_hasAPortOfItsOwn() throws {
        let board = Board()
        try board.plug("ttyUSB0", "1-1.3:1.0", "0403", "6010")
        try FileManager.default.removeItem(atPath: board.root + "/sys/class/tty/ttyUSB0")
        try board.plug("ttyUSB1", "1-1.3:1.1", "0403", "6010")
        #expect(board.adapters.unclaimed(knownToGPSD: []).map(\.port) == ["1-1.3:1.1"])
    }

    @Test(arguments: [
        "", "1", "1-", "-1", "1-1.", "1-1.x", "usb-1-1.3", "1-1.3:", "1-1:1.0:1", "1-1\"", "1-1.3 ",
        "../1-1",
    ])
    func portThatIsNone_isRefused(_ port: String) throws {
        let board = Board()
        try board.put("/etc/udev/rules.d/README", "")
        #expect(throws: (any Error).self) { try GNSSRule.write(port, root: board.root) }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: board.root + "/etc/udev/rules.d")
                == ["README"]
        )
    }

    @Test func ruleThatCannotBeWritten_saysWhatToDo() throws {
        let board = Board()
        #expect(throws: (any Error).self) { try GNSSRule.write("1-1.3", root: board.root) }
    }

    // MARK: Board

    @Test(arguments: [
        ("0", "ok", "never too low"), ("0x0", "ok", "never too low"), ("1", "fail", "too low now"),
        ("50005", "fail", "too low now"), ("50000", "warn", "was too low since"),
        ("0x80008", "warn", "slowed down"), ("20000", "warn", "slowed down"),
    ])
    func supply_isJudgedByTheFirmwaresFlags(flags: String, state: String, words: String) throws {
        for soc in ["soc/soc:firmware", "soc@107c000000/soc@107c000000:firmware"] {
            let board = Board()
            try board.put("/sys/devices/platform/\(soc)/get_throttled", flags + "\n")
            let finding = BoardCheck(input: board.input).findings.first { $0.part == "power" }
            #expect(finding?.state.rawValue == state)
            #expect(finding?.what.contains(words) == true)
        }
    }

    @Test(arguments: [("0", "ok"), ("1", "fail")])
    func powerSupply_usesKernelAlarm_withoutFirmwareQuery(
        alarm: String,
        state: String
    ) throws {
        let board = Board()
        #expect(board.state("power") == nil)
        try board.put("/sys/class/hwmon/hwmon0/name", "cpu_thermal\n")
        try board.put("/sys/class/hwmon/hwmon1/name", "rpi_volt\n")
        try board.put("/sys/class/hwmon/hwmon1/in0_lcrit_alarm", alarm + "\n")
        #expect(board.state("power") == state)
    }

    @Test(arguments: [("45277", "ok"), ("72000", "warn"), ("81500", "fail"), ("-274000", nil)])
    func temperature_isThatOfTheHottestZone(millidegrees: String, state: String?) throws {
        let board = Board()
        #expect(board.state("temperature") == nil)
        try board.put("/sys/class/thermal/thermal_zone1/temp", millidegrees + "\n")
        try board.put("/sys/class/thermal/cooling_device0/cur_state", "99000\n")
        #expect(board.state("temperature") == state)
    }

    @Test func bootFiles_areEvaluatedByErrorsAndLeftovers() throws {
        let board = Board()
        #expect(board.state("boot files") == nil)
        try board.put("/boot/firmware/config.txt", "arm_64bit=1\n")
        #expect(board.state("boot files") == "warn")
        try board.put("/etc/systemd/system/multi-user.target.wants/waypost-import.service", "")
        #expect(board.state("boot files") == "ok")
        try board.put("/boot/firmware/Waypost.TOKEN", "a-token\n")
        #expect(board.state("boot files") == "warn")
        try board.put(
            "/boot/firmware/Waypost.TOKEN",
            String(decoding: CardSecret.overwriting(90), as: UTF8.self)
        )
        #expect(board.state("boot files") == "ok")
        let card = try Device(card: "many-errors")
        let problems = try card.start().problems
        var configuration = board.configuration
        configuration.runtimeDirectory = card.paths.runtime
        let input = board.input(configuration, nil)
        let findings = BoardCheck(input: input).findings.filter { $0.part == "boot files" }
        #expect(findings.count == problems.count)
        #expect(findings.allSatisfy { $0.state == .warn && $0.next != nil })
    }

    // MARK: Card

    private static let healthyLog = """
        6,1,0,-;Booting Linux on physical CPU 0x0000000000 [0x410fd083]
        6,2,1,-;mmc0: new high speed SDXC card at address aaaa
         SUBSYSTEM=mmc
        6,3,1,-;EXT4-fs (mmcblk0p2): mounted filesystem with ordered data mode
        4,4,1,-;FAT-fs (mmcblk0p1): Volume was not properly unmounted. Some data may be lost. Please run fsck.

        """

    @Test(arguments: [
        ("3,9,9,-;mmc0: error -110 whilst initialising SD card", "warn"),
        ("3,9,9,-;I/O error, dev mmcblk0, sector 4196 op 0x1:(WRITE) flags 0x800", "warn"),
        ("2,9,9,-;EXT4-fs error (device mmcblk0p2): ext4_find_entry:1682", "warn"),
        ("3,9,9,-;FAT-fs (mmcblk0p1): error, fat_get_cluster: invalid cluster chain", "warn"),
        ("6,9,9,-;usb 1-1.3: new full-speed USB device number 4", "ok"),
        ("2,9,9,-;EXT4-fs error (device loop0): ext4_lookup:1789: inode #20", "ok"),
        // A stick with errors.
        ("3,9,9,-;I/O error, dev sda, sector 0 op 0x0:(READ) flags 0x80700", "ok"),
        ("3,9,9,-;FAT-fs (sda1): error, invalid access to FAT (entry 0x0c)", "ok"),
        ("3,9,9,-;Buffer I/O error on dev mmcblk0p4, logical block 7", "warn"),
    ])
    func card_isJudgedByTheKernelsLog(line: String, state: String) throws {
        let board = Board()
        try board.put("/dev/kmsg", Self.healthyLog + line + "\n")
        try board.put(
            "/proc/self/mounts",
            "/dev/mmcblk0p2 / ext4 ro 0 0\n/dev/sda1 /run/waypost-stick vfat rw 0 0\n"
        )
        #expect(CardCheck(input: board.input).findings.map(\.state.rawValue) == [state])
    }

    @Test(arguments: [
        ("/dev/sda2 / ext4 rw 0 0", "warn"), ("/dev/nvme0n1p2 / ext4 rw 0 0", "ok"),
        ("/dev/mmcblk0p2 / ext4 rw 0 0\n/dev/sda1 /var/lib ext4 rw 0 0", "warn"),
        // If the disk of the root is unknown, each disk may be it.
        ("overlay / overlay rw 0 0", "warn"),
    ])
    func diskThatTheSystemIsOn_isTheCard(mounts: String, state: String) throws {
        let board = Board()
        try board.put("/dev/kmsg", Self.healthyLog + "3,9,9,-;I/O error, dev sda, sector 8\n")
        try board.put("/proc/self/mounts", mounts + "\n")
        #expect(CardCheck(input: board.input).findings.map(\.state.rawValue) == [state])
    }

    @Test func card_whoseLogIsForRoot_isNoFailure() throws {
        let board = Board()
        #expect(CardCheck(input: board.input).findings.map(\.state) == [.ok])
    }

    @Test(arguments: [("rw", "ro", "fail"), ("rw", "rw", "ok"), ("ro", "ro", "ok")])
    func fileSystemThatTheKernelMadeReadOnly_isAFailure(
        wanted: String,
        mounted: String,
        state: String
    ) throws {
        let board = Board()
        let options = { (mode: String) in "\(mode),noatime" }
        try board.put(
            "/etc/fstab",
            "# <file system>\nPARTUUID=1\t/\text4\t\(options(wanted))\t0\t1\n"
        )
        try board.put(
            "/proc/self/mounts",
            "/dev/root / ext4 rw 0 0\n/dev/mmcblk0p2 / ext4 \(options(mounted)) 0 0\n"
        )
        #expect(CardCheck(input: board.input).findings.map(\.state.rawValue) == [state])
    }

    // MARK: Uploads

    @Test func oldUpload_isReported_ifRecordsWait() throws {
        let board = Board()
        var configuration = board.configuration
        configuration.upload.endpoint = "https://example.org/api/ingest"
        let clock = ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: 0),
                wall: WallTime(milliseconds: 1_800_000_000_000)
            )
        )
        var report = Snapshot.nothing(configuration, version: "test")
        report.daemon.running = true
        let check = { (pending: Int, secondsAgo: Int64?) -> String? in
            report.streams["waypost_events"]?.pending = pending
            report.upload.lastSuccessAt = secondsAgo.map {
                WallTime(milliseconds: clock.wall().milliseconds - $0 * 1000)
            }
            let input = board.input(configuration, report)
            return BoardCheck(input: input, clock: clock).findings.first { $0.part == "upload" }?
                .state
                .rawValue
        }
        #expect(check(0, nil) == nil)
        #expect(check(5, nil) == "warn")
        #expect(check(5, 60) == "ok")
        #expect(check(5, 7200) == "warn")
        #expect(check(0, 7200) == "ok")
        #expect(check(5, 90_000) == "fail")
        // A date of an earlier boot, before the time is known in this one.
        #expect(check(5, -7200) == "warn")
        #expect(check(0, -7200) == nil)
    }

    /// An upload in an earlier boot does not clear a refusal in this one, whose clock is not set
    /// yet.
    @Test func serverRefusal_isReported_beforeClockIsSet() throws {
        let folder = TemporaryFolder("run", "etc")
        let paths = ImportPaths(
            configuration: folder.path + "/etc/waypost.toml",
            credentials: folder.path + "/credstore",
            runtime: folder.path + "/run"
        )
        let problem = CardFailure(file: "", "E002 no such token", "ask whoever runs the server")
        let owner = ServiceOwner(stateDirectory: folder.path)
        _ = try CardReport(paths: paths, files: StepFiles(), owner: owner)
            .record(server: [problem], on: nil)
        var configuration = Configuration()
        configuration.runtimeDirectory = paths.runtime
        var report = Snapshot.nothing(configuration, version: "test")
        report.upload.lastSuccessAt = WallTime(rfc3339: "2026-11-24T12:00:00.000Z")
        let input = DoctorInput(
            configuration,
            environment: [:],
            version: "t",
            root: folder.path,
            report: report
        )
        let isReported = { (wall: String) throws in
            let stamp = Stamp(
                boot: SystemClock().now(),
                wall: try #require(WallTime(rfc3339: wall))
            )
            return BoardCheck(input: input, clock: ManualClock(stamp)).findings.contains {
                $0.what.contains("E002 no such token")
            }
        }
        #expect(try isReported("1970-01-01T00:00:20.000Z"))
        #expect(try isReported("2026-11-24T12:05:00.000Z"))
        #expect(try !isReported("2026-11-24T12:00:00.000Z"))
    }

    /// The text of /proc/self/mounts on Raspberry Pi OS with its overlay, with a separate data
    /// disk, on this project's card (upper folder mounted in the initramfs), and in a container.
    @Test func overlayInMemory_isKnownFromOneOnADisk() {
        let layers = "lowerdir=/media/root-ro,upperdir=/media/root-rw/overlay,workdir=/w"
        let inMemory = """
            sysfs /sys sysfs rw 0 0
            /dev/mmcblk0p2 /media/root-ro ext4 ro,relatime 0 0
            tmpfs-root /media/root-rw tmpfs rw,relatime 0 0
            overlayroot / overlay rw,relatime,\(layers) 0 0
            /dev/sda1 /var/lib/waypost ext4 rw 0 0

            """
        #expect(isOverlayInMemory("/etc/waypost", inMemory))
        #expect(isOverlayInMemory("/var/lib/waypost-2", inMemory))
        #expect(!isOverlayInMemory("/var/lib/waypost", inMemory))
        #expect(!isOverlayInMemory("/var/lib/waypost/x", inMemory))
        let card = """
            /dev/mmcblk0p2 / ext4 ro,noatime 0 0
            /dev/mmcblk0p4 /data ext4 rw,noatime 0 0
            waypost-etc /etc overlay rw,lowerdir=/root/etc,upperdir=/root/data/etc/upper 0 0
            tmpfs /run tmpfs rw 0 0
            """
        #expect(!isOverlayInMemory("/etc/waypost", card))
        // As waypost-import.service sees it, which cannot read homes.
        let hidden = "\ntmpfs /root tmpfs ro,nosuid,nodev,noexec,relatime,size=99132k,mode=755 0 0"
        #expect(!isOverlayInMemory("/etc/waypost", card + hidden))
        let container = "overlay / overlay rw,lowerdir=/l,upperdir=/var/lib/docker/1/diff 0 0"
        #expect(!isOverlayInMemory("/etc/waypost", container))
        #expect(!isOverlayInMemory("/etc/waypost", ""))
    }

    @Test func dataInMemory_isReported() throws {
        let board = Board()
        try board.put(
            "/proc/self/mounts",
            "tmpfs /rw tmpfs rw 0 0\noverlayroot / overlay rw,upperdir=/rw/overlay,workdir=/rw/work 0 0\n"
        )
        var configuration = Configuration()
        configuration.stateDirectory = "/"
        let input = DoctorInput(configuration, environment: [:], version: "1", root: board.root)
        let reported = DiskCheck(input: input).findings.filter { $0.what.contains("is in memory") }
        #expect(reported.map(\.state) == [.fail])
    }
}
