// A device that imports, with its folders and a card.
import Foundation
import Host
import Support

@testable import Daemon
@testable import Field
@testable import Status

/// A device with a card, in temporary folders.
final class Device {
    let folder = TemporaryFolder("card", "etc", "run")

    var card: String { folder.path + "/card" }

    /// True if a stick could be mounted.
    var isMounted = true

    /// True if the device's disk is an overlay in memory.
    var isForgetful = false

    /// The text of /proc/self/mounts.
    var mounts = ""

    var paths: ImportPaths {
        var paths = ImportPaths(
            configuration: folder.path + "/etc/waypost.toml",
            credentials: folder.path + "/credstore",
            runtime: folder.path + "/run",
            state: folder.path + "/state"
        )
        paths.fstab = folder.path + "/fstab"
        paths.notKept = isForgetful ? folder.path : folder.path + "/nowhere"
        paths.boardSerial = folder.path + "/serial-number"
        paths.bootID = folder.path + "/boot_id"
        paths.isMountPoint = { [isMounted] _ in isMounted }
        paths.mounts = { [mounts] in mounts }
        return paths
    }

    init(card fixture: String? = nil) throws {
        guard let fixture else { return }
        try FileManager.default.removeItem(atPath: card)
        try FileManager.default.copyItem(
            atPath: Tree.path("Tests/Fixtures/cards/\(fixture)"),
            toPath: card
        )
    }

    @discardableResult
    func start(
        _ medium: CardImport.Medium = .card,
        from path: String? = nil,
        _ files: StepFiles = StepFiles()
    ) throws -> ImportOutcome {
        try CardImport(path ?? card, on: medium, into: paths, files: files).run()
    }

    func put(_ text: String, _ name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(card)/\(name)"))
    }

    func text(_ path: String) -> String? {
        try? String(contentsOfFile: "\(folder.path)/\(path)", encoding: .utf8)
    }

    /// The configuration and the token in force.
    var state: [String?] { [text("etc/imported.toml"), text("credstore/waypost.token")] }

    /// The text of `waypost-errors.txt`.
    var errors: String? { text("card/waypost-errors.txt") }

    /// The problems that `status` shows now.
    var problems: [CardFailure] { problems(after: .zero) }

    /// Returns the problems that `status` shows after `time`.
    func problems(after time: Duration) -> [CardFailure] {
        CardFailures.read(in: paths.runtime).all(at: SystemClock().now() + time)
    }
}
