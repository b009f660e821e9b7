// Imports from media that fail, and which of several media is in force.
import Configuration
import Foundation
import Host
import Support
import Testing
import Upload

@testable import Daemon
@testable import Field
@testable import Setup
@testable import Status

@Suite struct CardImportTests {
    private static func configuration(_ host: String) -> String {
        "[upload]\nendpoint = \"https://\(host).example.org/api/ingest\"\n"
    }

    @Test func files_areForTheServiceAlone() throws {
        let device = try Device(card: "good-notepad")
        try device.start()
        let mode = { (path: String) throws -> Int in
            let path = "\(device.folder.path)/\(path)"
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            return attributes[.posixPermissions] as? Int ?? 0
        }
        #expect(try mode("credstore/waypost.token") == 0o600)
        #expect(try mode("credstore") == 0o700)
        #expect(try mode("etc/imported.toml") == 0o640)
        #expect(try mode("etc/import") == 0o700)
        #expect(try mode("etc/import/seen") == 0o600)
    }

    @Test func importedConfiguration_overridesOwn_withAWarning() throws {
        let device = try Device()
        let path = device.paths.configuration
        try device.folder.write("# nothing yet\n[upload]\n", to: "etc/waypost.toml")
        try device.put(Self.configuration("card"), "waypost.toml")
        try device.start()
        let quiet = try Configuration.load(path: path, environment: [:])
        #expect(quiet.values.upload.endpoint == "https://card.example.org/api/ingest")
        #expect(quiet.warnings == [])
        try device.folder.write(Self.configuration("mine"), to: "etc/waypost.toml")
        let warned = try Configuration.load(path: path, environment: [:])
        #expect(warned.warnings.map(\.description).first?.contains("is not read") == true)
        // Deleting the imported file undoes the import; the same card does not import it again.
        try FileManager.default.removeItem(atPath: device.paths.imported)
        try device.start()
        let own = try Configuration.load(path: path, environment: [:])
        #expect(own.values.upload.endpoint == "https://mine.example.org/api/ingest")
    }

    /// A copied card keeps id and token; only a person knows whether the other board still runs.
    @Test func cardInAnotherBoard_isReported_untilNextStart() throws {
        let device = try Device()
        try device.put(Self.configuration("card"), "waypost.toml")
        let boot = { (board: String, number: Int) throws -> Bool in
            // Like the kernel's files: a zero byte at the end, or a line.
            try device.folder.write(board + "\0", to: "serial-number")
            try device.folder.write("boot-\(number)\n", to: "boot_id")
            try device.start()
            #expect((device.errors != nil) == !device.problems.isEmpty)
            return device.problems.contains { $0.what.contains("100000000000000a") }
        }
        #expect(try !boot("100000000000000a", 1))
        #expect(try !boot("100000000000000a", 2))
        #expect(try boot("100000000000000b", 3))
        // An import that is repeated within a boot, as after a failure.
        #expect(try boot("100000000000000b", 3))
        #expect(device.errors?.contains("device_id") == true)
        #expect(try !boot("100000000000000b", 4))
        // A configured device_id is an answer. A PC has no serial number to compare.
        try device.put("device_id = \"site-b\"\n" + Self.configuration("card"), "waypost.toml")
        #expect(try !boot("100000000000000a", 5))
        #expect(try !boot("", 6))
    }

    @Test func repluggedStick_isImported_andCardDoesNotUndoIt() throws {
        let device = try Device()
        try device.put(Self.configuration("card"), "waypost.toml")
        try device.start()
        let stick = TemporaryFolder("Waypost")
        try stick.write(Self.configuration("stick"), to: "Waypost/WAYPOST.TOML")
        #expect(try device.start(.stick, from: stick.path).imported == ["WAYPOST.TOML"])
        #expect(try device.start(.card).imported == [])
        #expect(device.state[0] == Self.configuration("stick"))
        try device.put(Self.configuration("newer"), "waypost.toml")
        #expect(try device.start(.card).imported == ["waypost.toml"])
        #expect(try device.start(.stick, from: stick.path).imported == ["WAYPOST.TOML"])
        #expect(device.state[0] == Self.configuration("stick"))
        #expect(try device.start(.stick, from: stick.path).imported == [])
    }

    /// A code deletes the token; if the server refuses the code, the same token is imported again.
    @Test func tokenThatACodeTookAway_isTakenOverAgain() throws {
        let device = try Device()
        try device.put(Self.configuration("card"), "waypost.toml")
        try device.put("token-1\n", "waypost.token")
        #expect(try device.start().imported == ["waypost.token", "waypost.toml"])
        try device.put("CODE-1\n", "waypost.code")
        #expect(try device.start().imported == ["waypost.code"])
        try device.put("token-1\n", "waypost.token")
        #expect(try device.start().imported == ["waypost.token"])
        #expect(device.state[1] == "token-1\n# for https://card.example.org\n")
        // While a token is stored, copying the old one again changes nothing.
        try device.put("CODE-1\n", "waypost.code")
        #expect(try device.start().imported == [])
        #expect(device.state[1] == "token-1\n# for https://card.example.org\n")
    }

    /// The stick cannot be mounted, so its mount point is an empty folder, or it fails while it is
    /// read.
    @Test func brokenStick_isReported_eachTimeItIsPluggedIn() throws {
        let device = try Device()
        let stick = TemporaryFolder()
        for _ in 1...2 {
            device.isMounted = false
            let outcome = try device.start(.stick, from: stick.path)
            #expect(
                outcome.problems.map(\.what) == ["its file system is not there or cannot be read"]
            )
            #expect(device.problems == outcome.problems && !outcome.isLater)
            device.isMounted = true
            let gone = try device.start(.stick, from: stick.path + "/gone")
            #expect(gone.problems.first?.what.hasPrefix("cannot be read: ") == true)
            #expect(device.problems == gone.problems)
            // A stick without a folder for this device is ignored.
            #expect(try device.start(.stick, from: stick.path) == ImportOutcome())
            // A boot replaces the reported problems.
            #expect(try device.start() == ImportOutcome())
            #expect(device.problems == [])
        }
    }

    /// The device boots from USB with a write-protected boot partition, which looks like a stick
    /// that cannot be mounted for writing.
    @Test func partitionThatTheDeviceBootsFrom_isNoBrokenStick() throws {
        let device = try Device()
        device.isMounted = false
        device.mounts = """
            /dev/sda2 / ext4 rw 0 0
            /dev/sda1 /boot/firmware vfat ro,relatime 0 0
            /dev/sdb1 /mnt vfat ro 0 0
            """
        try device.folder.write("PARTUUID=5e-01 /boot/firmware vfat defaults 0 2\n", to: "fstab")
        let own = try device.start(.stick, from: "/run/waypost-stick/sda1")
        #expect(own == ImportOutcome() && device.problems == [])
        for other in ["sdb1", "sdc1"] {
            let outcome = try device.start(.stick, from: "/run/waypost-stick/\(other)")
            #expect(outcome.problems.map(\.file) == ["the stick"])
        }
    }

    @Test func missingPartition_isReported_ifExpected() throws {
        let device = try Device()
        let path = device.folder.path + "/boot"
        let pc = try device.start(.card, from: path)
        #expect(pc == ImportOutcome())
        var paths = device.paths
        paths.isMountPoint = ImportPaths.isMounted
        paths.fstab = try device.folder.write("LABEL=FIRMWARE \(path) vfat ro 0 2\n", to: "fstab")
        let outcome = try CardImport(path, into: paths).run()
        #expect(
            outcome.problems.map(\.what) == ["its file system is not there or cannot be read"]
        )
        #expect(device.problems == outcome.problems && outcome.isLater)
        // Its mount point exists.
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        #expect(try CardImport(path, into: paths).run().problems.count == 1)
        // A separate partition.
        paths.fstab = try device.folder.write("proc /proc proc defaults 0 0\n", to: "fstab")
        #expect(try CardImport("/proc", into: paths).run().problems == [])
    }

    /// Returns files whose opening for writing fails on `card`.
    private func files(thatRefuse card: String, _ code: Int32) -> StepFiles {
        var files = StepFiles()
        files.onOpen = { path in
            if path.hasPrefix(card) { throw SystemError("open", on: path, code: code) }
        }
        return files
    }

    /// Read-only, or too full to overwrite even one file.
    @Test(arguments: [EROFS, ENOSPC])
    func unwritableCard_isReportedByStatus_andStillUsed(_ code: Int32) throws {
        let device = try Device(card: "good-notepad")
        let outcome = try device.start(.card, from: nil, files(thatRefuse: device.card, code))
        #expect(outcome.imported.count == 2)
        #expect(device.state[1]?.hasPrefix("device-token-1\n# for https://") == true)
        let problem = try #require(outcome.problems.first { $0.file.contains("oken") })
        #expect(problem.what.contains("the device has it, but cannot overwrite it here"))
        #expect(outcome.problems.contains { $0.what.hasPrefix("cannot be written") })
        #expect(device.problems == outcome.problems)
        // Once it is writable, no problem is left.
        #expect(try device.start().problems == [])
        #expect(device.text("card/Waypost.Token.TXT")?.contains("device-token-1") == false)
    }

    /// raspi-config write-protects a boot partition like this; without a problem nothing is written
    /// or reported.
    @Test(.enabled(if: TemporaryMount.isAllowed))
    func readOnlyCard_thatIsInOrder_isNoProblem() throws {
        let device = try Device()
        let card = try TemporaryMount("ro")
        #expect(try device.start(.card, from: card.path) == ImportOutcome())
        #expect(device.problems == [])
    }

    /// Its token stays on the card, which is not a change at the next boot, even after a stick.
    @Test(arguments: ["waypost.token", "waypost.code"])
    func cardThatTakesNoWrites_undoesNoStick(_ secret: String) throws {
        let device = try Device(card: "good-notepad")
        let refusing = files(thatRefuse: device.card, EROFS)
        try device.start(.card, from: nil, refusing)
        let stick = TemporaryFolder("waypost")
        try stick.write(Self.configuration("stick"), to: "waypost/waypost.toml")
        try stick.write("of-the-stick\n", to: "waypost/\(secret)")
        #expect(try device.start(.stick, from: stick.path).imported.count == 2)
        let (state, code) = (device.state, device.text("etc/import/waypost.code"))
        #expect([state[1], code].contains { $0?.hasPrefix("of-the-stick") == true })
        for _ in 0..<2 {
            #expect(try device.start(.card, from: nil, refusing).imported == [])
            #expect(device.state == state && device.text("etc/import/waypost.code") == code)
        }
        // Once overwritten there, the same token on the card is a new one from a person.
        try device.start()
        #expect(device.state == state && device.text("etc/import/waypost.code") == code)
        try device.put(Self.configuration("card"), "WAYPOST.TOML.txt")
        try device.put("device-token-1\n", "Waypost.Token.TXT")
        #expect(try device.start().imported.count == 2)
        #expect(device.state[1]?.hasPrefix("device-token-1\n") == true)
    }

    /// A card without its data partition for one boot: files that were not imported are there at
    /// the next boot.
    @Test func deviceThatKeepsNothing_takesNothing() throws {
        let device = try Device(card: "good-notepad")
        device.isForgetful = true
        let outcome = try device.start()
        #expect(outcome.problems.map(\.what).first?.contains("nothing would be kept") == true)
        #expect(device.errors?.contains("nothing would be kept") == true)
        #expect(device.problems == outcome.problems && device.state == [nil, nil])
        device.isForgetful = false
        #expect(try device.start().imported.count == 2)
        #expect(device.state[1]?.hasPrefix("device-token-1\n# for https://") == true)
        #expect(device.errors == nil)
    }

    private static let overlay = """
        tmpfs-root /media/root-rw tmpfs rw,relatime 0 0
        overlayroot / overlay rw,lowerdir=/media/root-ro,upperdir=/media/root-rw/overlay,workdir=/w 0 0
        """

    /// The overlay file system of Raspberry Pi OS: each boot starts from the disk below.
    @Test func overlayInMemory_takesASecret_andLeavesItOnTheCard() throws {
        let device = try Device()
        device.mounts = Self.overlay
        try device.put(Self.configuration("card"), "waypost.toml")
        try device.put("token-1\n", "waypost.token")
        for _ in 1...2 {
            let outcome = try device.start()
            #expect(device.state[1] == "token-1\n# for https://card.example.org\n")
            #expect(outcome.problems.map(\.file) == ["waypost.token"])
            #expect(outcome.problems.first?.what.contains("lost when the power fails") == true)
            #expect(device.problems == outcome.problems)
            #expect(device.text("card/waypost.token") == "token-1\n")
        }
    }

    @Test func overlayInMemory_usesNoCodeUp() throws {
        let device = try Device()
        device.mounts = Self.overlay
        try device.put(Self.configuration("card"), "waypost.toml")
        try device.put("CODE-1\n", "waypost.code")
        let outcome = try device.start()
        #expect(outcome.imported == [] && outcome.problems.map(\.file) == ["waypost.code"])
        #expect(device.text("card/waypost.code") == "CODE-1\n")
        device.mounts = ""
        #expect(try device.start().imported == ["waypost.code", "waypost.toml"])
        #expect(device.text("card/waypost.code")?.contains("CODE-1") == false)
        #expect(device.errors == nil)
    }

    @Test func fullDisk_changesNothing() throws {
        let device = try Device(card: "good-plain")
        var files = StepFiles()
        let etc = device.folder.path + "/etc"
        files.onOpen = { path in
            if path.hasPrefix(etc) { throw SystemError("open", on: path, code: ENOSPC) }
        }
        let outcome = try device.start(.card, from: nil, files)
        #expect(outcome.problems.first?.what.contains("No space left on device") == true)
        #expect(device.problems == outcome.problems)
        #expect(device.errors?.contains("No space left on device") == true)
        #expect(device.state == [nil, nil])
        #expect(try device.start().imported == ["waypost.toml"])
        #expect(device.errors == nil)
    }

    /// Everything is in force, but the disk is full before the token left on the card is noted.
    @Test func fullDiskAtEnd_isReportedWithTheRest() throws {
        let device = try Device(card: "good-notepad")
        var files = StepFiles()
        let (card, notes) = (device.card, Locked(0))
        files.onOpen = { path in
            if path.hasPrefix(card) { throw SystemError("open", on: path, code: EROFS) }
            guard path.hasSuffix("/seen.new") else { return }
            notes.update { $0 += 1 }
            if notes.value == 2 { throw SystemError("open", on: path, code: ENOSPC) }
        }
        let outcome = try device.start(.card, from: nil, files)
        #expect(outcome.imported.count == 2)
        let reported = outcome.problems.map(\.what)
        #expect(
            reported.contains { $0.contains("the device has it, but cannot overwrite it here") }
        )
        #expect(reported.contains { $0.contains("No space left on device") })
        #expect(device.problems == outcome.problems)
    }

    @Test func status_hasEachProblem_ofTheCard() throws {
        let device = try Device(card: "many-errors")
        let outcome = try device.start()
        #expect(outcome.problems.count == 6)
        var configuration = Configuration()
        configuration.runtimeDirectory = device.paths.runtime
        configuration.stateDirectory = device.folder.path + "/state"
        let report = Snapshot.report(configuration, .gone(path: ""), version: "test")
        for problem in outcome.problems {
            #expect(report.reasons.contains("on the card: \(problem)"))
        }
    }

    @Test func largeFile_isRefused() throws {
        let device = try Device()
        try device.put(String(repeating: "#", count: 140_000), "waypost.toml")
        #expect(try device.start().problems.map(\.what) == ["is larger than 128 KiB"])
        try device.put(String(repeating: "#", count: 70_000), "waypost.toml")
        #expect(try device.start().problems.map(\.what) == ["is larger than 64 KiB"])
    }
}
