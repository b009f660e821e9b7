// Root in the directories of the service's user, and the files there afterwards.
import CLinux
import Foundation
import Host
import Support
import Testing

@testable import Daemon
@testable import Field
import Setup
@testable import Status

@Suite(.enabled(if: geteuid() == 0)) struct ServiceDirectoryTests {
    private static let nobody: uid_t = 65534

    /// A device whose state and runtime directory belong to the service's user.
    private func device() throws -> Device {
        let device = try Device()
        mkdir(device.paths.state, 0o750)
        for path in [device.paths.state, device.paths.runtime] {
            try #require(chown(path, Self.nobody, Self.nobody) == 0)
        }
        return device
    }

    private func owner(_ path: String) -> uid_t? {
        var figures = stat()
        return lstat(path, &figures) == 0 ? figures.st_uid : nil
    }

    private func owners(of device: Device) throws -> [String: uid_t] {
        var owners: [String: uid_t] = [:]
        for folder in [device.paths.state, device.paths.runtime] {
            for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
                owners[name] = owner("\(folder)/\(name)")
            }
        }
        return owners
    }

    /// Busy at the first request after each code; the requested token is stored until the retry.
    private static let busy = StubServer.posts("def answer(path, before): return 503, b''\n")
    private static let ready = StubServer.posts(
        "def answer(path, before): return 200, b'{\"token\":\"given\"}'\n"
    )

    @Test func codeOfACard_leavesNothingOfRootsThere() throws {
        let stub = try StubServer(Self.busy, "")
        let device = try device()
        let endpoint = "http://127.0.0.1:\(stub.port)/api/ingest"
        try device.put("[upload]\nendpoint = \"\(endpoint)\"\n", "waypost.toml")
        try device.put("KNOWNCODE", "waypost.code")
        try device.start()
        #expect(try CardEnrolment(device.paths, version: "1").run(on: nil).isLater)
        let owners = try owners(of: device)
        let expected = ["asked-token", "device_id", "import-not-told", "import-problems.json"]
        #expect(owners.keys.sorted() == expected)
        #expect(owners.values.allSatisfy { $0 == Self.nobody }, "\(owners)")
        stub.stop()
    }

    @Test func enrolmentByHand_leavesNothingOfRootsThere() throws {
        let stub = try StubServer(Self.ready, "")
        let device = try device()
        try device.folder.write(
            "state_directory = \"\(device.paths.state)\"\nruntime_directory = \"\(device.paths.runtime)\"\n",
            to: "etc/waypost.toml"
        )
        let path = device.paths.configuration
        _ = try Onboarding(configuration: path, environment: [:], version: "1")
            .enrol(
                at: .init(endpoint: "http://127.0.0.1:\(stub.port)/api/ingest"),
                with: .code("KNOWNCODE")
            )
        let owners = try owners(of: device)
        #expect(owners.keys.sorted() == ["device_id", "enrolled"])
        #expect(owners.values.allSatisfy { $0 == Self.nobody }, "\(owners)")
        #expect(owner(device.folder.path + "/etc/token") == Self.nobody)
        stub.stop()
    }

    @Test func directory_isGivenToService_onlyIfRootsAndNotALink() throws {
        let device = try device()
        let service = ServiceOwner(stateDirectory: device.paths.state)
        #expect(service.ids?.user == Self.nobody)
        let folder = TemporaryFolder("roots", "other", "victim")
        let (roots, other) = (folder.path + "/roots", folder.path + "/other")
        let (victim, link) = (folder.path + "/victim", folder.path + "/link")
        chown(other, 1, 1)
        symlink(victim, link)
        for path in [roots, other, link] { service.own(path) }
        #expect(owner(roots) == Self.nobody)
        #expect(owner(other) == 1)
        #expect(owner(victim) == 0 && owner(link) == 0)
    }

    /// Root does not follow links that the service's user has put there.
    @Test func linksInItsDirectories_areNotRead() throws {
        let device = try device()
        let (state, runtime) = (device.paths.state, device.paths.runtime)
        let id = try device.folder.write("0f9b54c1-64f5-4d2c-9c7e-2f1e6b0f7a11\n", to: "secret")
        symlink(id, state + "/device_id")
        #expect(throws: (any Error).self) { try DeviceID.kept(in: state) }
        let said = try device.folder.write("critical auto\n", to: "said")
        symlink(said, runtime + "/led")
        #expect(LEDFile(runtimeDirectory: runtime).read() == nil)
        let problem = #"{"card":[{"file":"x","what":"y","remedy":"z"}],"server":[]}"#
        let reported = try device.folder.write(problem, to: "told")
        symlink(reported, runtime + "/import-problems.json")
        #expect(device.problems == [])
    }
}
