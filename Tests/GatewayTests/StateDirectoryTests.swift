// A state directory in memory, or on a file system that is too small: status and doctor report it.
import Host
import Support
import Testing

@testable import Daemon
@testable import Field
@testable import Setup

@Suite struct StateDirectoryTests {
    @Test(arguments: ["tmpfs", "ramfs"])
    func stateOnAFileSystemInMemory_isReported(type: String) throws {
        let root = TemporaryFolder("proc/self")
        let mounts = "/dev/sda1 / ext4 rw 0 0\nnone /var/lib \(type) rw 0 0\n"
        #expect(memoryWarning("/var/lib/waypost", mounts)?.contains("a \(type)") == true)
        #expect(memoryWarning("/var/lib", "/dev/sda1 / ext4 rw 0 0\n") == nil)
        try root.write("none / \(type) rw 0 0\n", to: "proc/self/mounts")
        var configuration = Configuration()
        configuration.stateDirectory = "/"
        let input = DoctorInput(configuration, environment: [:], version: "1", root: root.path)
        let reported = DiskCheck(input: input).findings.filter { $0.what.contains("is in memory") }
        #expect(reported.map(\.state) == [.fail])
        #expect(reported.first?.next?.contains("mount a disk there") == true)
    }

    @Test(.enabled(if: TemporaryMount.isAllowed)) func smallFileSystem_isReported() throws {
        let mount = try TemporaryMount("size=20m")
        var configuration = Configuration()
        configuration.stateDirectory = mount.path
        let input = DoctorInput(configuration, environment: [:], version: "1")
        let reported = DiskCheck(input: input).findings.filter {
            $0.what.contains("less than storage.critical_free (50MB)")
        }
        #expect(reported.map(\.state) == [.fail])
        let fixture = try GatewayFixture(change: { $0.stateDirectory = mount.path })
        defer { fixture.stop() }
        let ending = "use a larger one, or lower storage.critical_free"
        try waitUntil("the report") { fixture.reasons.contains { $0.hasSuffix(ending) } }
        #expect(fixture.reasons.contains { $0.contains("is in memory, a tmpfs") })
    }
}
