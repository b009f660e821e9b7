// The state and runtime directories, and the device id stored there.
import Foundation
import Host
import Support
import Testing

import Daemon
import Setup

@Suite struct DirectoriesTests {
    private let scratch: TemporaryFolder

    init() throws {
        scratch = TemporaryFolder()
    }

    private func configuration(state: String, runtime: String = "run") -> Configuration {
        var configuration = Configuration()
        configuration.stateDirectory = state.hasPrefix("/") ? state : "\(scratch.path)/\(state)"
        configuration.runtimeDirectory = "\(scratch.path)/\(runtime)"
        return configuration
    }

    private func failure(_ configuration: Configuration) -> Failure? {
        do {
            try configuration.prepareDirectories()
            return nil
        } catch {
            return error
        }
    }

    @Test func directories_areMadeAndLeftEmpty() throws {
        let configuration = configuration(state: "var/lib/waypost", runtime: "run/waypost")
        try configuration.prepareDirectories()
        try configuration.prepareDirectories()
        for (path, mode) in [("var/lib/waypost", 0o750), ("run/waypost", 0o755)] {
            let full = "\(scratch.path)/\(path)"
            let attributes = try FileManager.default.attributesOfItem(atPath: full)
            #expect(attributes[.posixPermissions] as? Int == mode)
            #expect(try FileManager.default.contentsOfDirectory(atPath: full) == [])
        }
    }

    @Test func fileInPlaceOfADirectory_isNamed() throws {
        try scratch.write("", to: "file")
        for path in ["\(scratch.path)/file", "\(scratch.path)/file/below"] {
            #expect(
                failure(configuration(state: path))
                    == Failure(
                        "state_directory \(path) cannot be written: Not a directory; something on the "
                            + "path is not a directory; move it away or choose another path"
                    )
            )
        }
        try scratch.write("", to: "other")
        let text = failure(configuration(state: "fine", runtime: "other"))?.message
        #expect(
            text?.hasPrefix("runtime_directory \(scratch.path)/other cannot be written: ") == true
        )
    }

    @Test func directoryThatTakesNoFile_isNamedWithTheReason() {
        // Not even root can create a file in /proc.
        let text = failure(configuration(state: "/proc/self"))?.message ?? ""
        #expect(text.hasPrefix("state_directory /proc/self cannot be written: "))
        #expect(failure(configuration(state: "/proc/none/waypost")) != nil)
    }

    @Test(.enabled(if: TemporaryMount.isAllowed, "needs the right to mount a file system"))
    func fullDisk_isDistinguishedByItsCode() throws {
        let disk = try TemporaryMount("size=4k")
        let mount = disk.path
        try Data(count: 4096).write(to: URL(fileURLWithPath: "\(mount)/all"))
        #expect(
            failure(configuration(state: mount))
                == Failure(
                    "state_directory \(mount) cannot be written: No space left on device; free some "
                        + "space there (df \(mount))",
                    code: .storageFull
                )
        )
        #expect(try FileManager.default.contentsOfDirectory(atPath: mount) == ["all"])
    }

    @Test(.enabled(if: TemporaryMount.isAllowed, "needs the right to mount a file system"))
    func readOnlyFileSystem_isNamed() throws {
        let disk = try TemporaryMount("ro")
        let mount = disk.path
        #expect(
            failure(configuration(state: mount))
                == Failure(
                    "state_directory \(mount) cannot be written: Read-only file system; mount its file "
                        + "system writable, or choose another directory"
                )
        )
    }
}

@Suite struct DeviceIDTests {
    private let scratch: TemporaryFolder

    init() throws {
        scratch = TemporaryFolder()
    }

    private func resolve(_ configured: String = "auto") throws -> String {
        try DeviceID.resolve(configured, stateDirectory: scratch.path)
    }

    @Test func id_isMadeOnceAndKept() throws {
        #expect(try DeviceID.kept(in: scratch.path) == nil)
        let id = try resolve()
        let uuid = try #require(UUID(uuidString: id))
        #expect(uuid.uuidString.lowercased() == id)
        #expect(Array(id)[14] == "4" && "89ab".contains(Array(id)[19]))
        #expect(try resolve() == id)
        #expect(try DeviceID.kept(in: scratch.path) == id)
        #expect(try scratch.read("device_id") == "\(id)\n")
        #expect(try scratch.files == ["device_id"])
    }

    @Test func ids_differ() throws {
        let other = TemporaryFolder()
        #expect(try resolve() != DeviceID.resolve("auto", stateDirectory: other.path))
    }

    @Test func configuredID_isUsedAsItIs() throws {
        #expect(try resolve("pi-1") == "pi-1")
        #expect(try scratch.files == [])
    }

    @Test func id_isReadAsAPersonMayHaveWrittenIt() throws {
        let id = "0F9B54C1-64F5-4D2C-9C7E-2F1E6B0F7A11"
        try scratch.write("\(id) \r\n", to: "device_id")
        #expect(try resolve() == id)
    }

    @Test(arguments: [
        "", "\0\0\0\0\0\0\0\0", "0f9b54c1-64f5", "0f9b54c164f54d2c9c7e2f1e6b0f7a11\n",
        "0f9b54c1-64f5-4d2c-9c7e-2f1e6b0f7a1g\n",
        "0f9b54c1-64f5-4d2c-9c7e-2f1e6b0f7a11 0f9b54c1-64f5-4d2c-9c7e-2f1e6b0f7a11",
    ])
    func damagedFile_isNotReplaced(text: String) throws {
        let path = try scratch.write(text, to: "device_id")
        #expect(
            throws: Failure(
                "device id file \(path) is damaged: it holds no UUID; write the id that the server knows "
                    + "into it, or delete it to become a new device"
            )
        ) {
            try resolve()
        }
        #expect(try scratch.read("device_id") == text)
    }

    @Test func damagedFile_isRepairedFromTheDatabase() throws {
        let state = scratch.path + "/state"
        func run() throws {
            let fixture = try GatewayFixture(change: { $0.stateDirectory = state })
            try waitUntil("its start") { fixture.readies.value > 0 }
            fixture.stop()
        }
        try run()
        let id = try #require(try DeviceID.kept(in: state))
        for text in ["", "0f9b54c1-64f5"] {
            try text.write(toFile: state + "/device_id", atomically: true, encoding: .utf8)
            try run()
            #expect(try DeviceID.kept(in: state) == id)
        }
        // A deleted file means a new device.
        try FileManager.default.removeItem(atPath: state + "/device_id")
        try run()
        #expect(try DeviceID.kept(in: state) != id)
    }

    @Test(arguments: ["", "0f9b54c1-64f5"])
    func repair_isReportedWithIDAndFile(text: String) throws {
        let path = try scratch.write(text, to: "device_id")
        let copy = "0f9b54c1-64f5-4d2c-9c7e-2f1e6b0f7a11"
        var reported: [String] = []
        func resolve() throws -> String {
            try DeviceID.resolve("auto", stateDirectory: scratch.path, copy: copy) {
                reported.append($0)
            }
        }
        #expect(try resolve() == copy)
        #expect(try resolve() == copy)
        #expect(
            reported == [
                "device id file \(path) was damaged: it held no UUID; "
                    + "it now holds \(copy), the id that the database knows"
            ]
        )
    }

    /// An unreadable file may hold the id.
    @Test func fileThatCannotBeRead_isNotReplaced() throws {
        let path = scratch.path + "/device_id"
        symlink(path, path)
        #expect(
            throws: Failure("device id file \(path): Too many levels of symbolic links")
        ) {
            let copy = "0f9b54c1-64f5-4d2c-9c7e-2f1e6b0f7a11"
            return try DeviceID.resolve("auto", stateDirectory: scratch.path, copy: copy)
        }
        var status = stat()
        #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    }

    @Test func link_isFollowedByTheServiceAndNotByRoot() throws {
        let id = "0f9b54c1-64f5-4d2c-9c7e-2f1e6b0f7a11"
        symlink(try scratch.write(id, to: "elsewhere"), scratch.path + "/device_id")
        let kept = try? DeviceID.kept(in: scratch.path)
        #expect(kept == (geteuid() == 0 ? nil : id))
    }

    @Test func id_cannotBeKept_whereThereIsNoDirectory() throws {
        let path = "\(scratch.path)/none"
        #expect(throws: Failure("device id cannot be kept in \(path): No such file or directory")) {
            try DeviceID.resolve("auto", stateDirectory: path)
        }
    }

    @Test func manyAtOnce_agreeOnOneID() async throws {
        let path = scratch.path
        let ids = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<16 {
                group.addTask { try DeviceID.resolve("auto", stateDirectory: path) }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(try scratch.files == ["device_id"])
    }

    @Test func unrecordedEnrolment_isReportedWithConsequence() throws {
        let mark = EnrolmentMark(stateDirectory: scratch.path + "/nowhere")
        #expect(!mark.names("https://host/api/ingest"))
        let reported = """
            the server accepted this device, but that cannot be stored: \(mark.path): \
            No such file or directory; it is asked again at the next start
            """
        #expect(throws: Failure(reported)) { try mark.write("https://host/api/ingest") }
    }
}
