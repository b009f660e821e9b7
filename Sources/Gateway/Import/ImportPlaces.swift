// Where an import puts things.
import CLinux
import Configuration
import Glibc
import Host
import HTTP

/// The paths of an import.
package struct ImportPlaces: Sendable {
    /// `/etc/waypost`.
    let folder: String
    /// The configuration that a person edits on the device; what came from a card lies beside it.
    let configuration: String
    /// systemd's store of credentials (systemd.exec(5), LoadCredential=).
    let credentials: String
    /// The gateway's runtime directory, where `status` finds what is wrong with a card.
    let runtime: String
    /// The gateway's state directory, as its unit has it.
    let state: String
    /// Tells which folders ought to be mounted.
    var fstab = "/etc/fstab"
    /// There is a mark where a card's initramfs found no data partition: all that is written is in memory.
    var notKept = "/run/waypost-not-kept"
    /// The board's own number (Devicetree Specification, 2.3: `serial-number` of the root).
    var boardSerial = "/proc/device-tree/serial-number"
    /// Another one each boot.
    var bootID = "/proc/sys/kernel/random/boot_id"
    /// Tells what is mounted.
    var mounts: @Sendable () -> String = currentMounts
    /// Whether a folder is on another disk than the one that it lies in.
    var isMountPoint: @Sendable (_ path: String) -> Bool = isMounted

    package init(
        configuration: String,
        credentials: String,
        runtime: String,
        state: String = "/var/lib/waypost"
    ) {
        self.configuration = configuration
        folder = Host.folder(ofPath: configuration)
        (self.credentials, self.runtime, self.state) = (credentials, runtime, state)
    }

    var imported: String { "\(folder)/\(Configuration.importedName)" }

    /// What only the import itself reads.
    var journal: String { "\(folder)/import" }

    /// A code that waits for the network.
    var code: String { "\(journal)/\(CardFile.code.rawValue)" }

    /// There is something that the server has not been asked about.
    var unverified: String { "\(journal)/unverified" }

    var token: String { "\(credentials)/\(Token.credential)" }

    var keys: String { "\(credentials)/\(StoreKeys.credential)" }

    /// What is to come into force, in its last step.
    var pending: String { "\(journal)/pending" }

    /// There is a mark from before something comes into force until the service is restarted: a program that is killed between
    /// restarts nothing.
    ///
    /// In the runtime directory, for a boot starts the service anyway.
    private var behind: String { "\(runtime)/import-not-told" }

    /// Whether the service runs with what was in force before; it stays so where not all of the new is in its place.
    package var isServiceBehind: Bool { access(behind, F_OK) == 0 && access(pending, F_OK) != 0 }

    /// Before anything comes into force.
    func noteServiceIsBehind(_ owner: ServiceOwner) {
        makeRuntime(owner)
        // Without it the service is restarted all the same, if nobody kills this program.
        try? SmallFile.replace(behind, [], mode: 0o644, owner: owner.ids, isSynced: false)
    }

    /// The service is restarted, or is about to be.
    package func noteServiceRestarted() { unlink(behind) }

    func makeRuntime(_ owner: ServiceOwner) {
        if mkdir(runtime, 0o755) == 0 { owner.own(runtime) }
    }

    /// Where a secret is kept; nil of what is none.
    func secret(_ file: CardFile) -> String? {
        switch file {
        case .configuration: nil
        case .token: token
        case .code: code
        case .keys: keys
        }
    }

    /// Whether a secret that was taken over has not gone since: a code takes the token away, whatever it is good for.
    ///
    /// A code goes for its token. A configuration that is deleted is not to come back by itself.
    func has(_ file: CardFile) -> Bool {
        let files = file == .code ? [code, token] : secret(file).map { [$0] } ?? []
        return files.isEmpty || files.contains { access($0, F_OK) == 0 || errno != ENOENT }
    }

    /// Whether something ought to be mounted there.
    func isListed(_ path: String) -> Bool {
        mountTable(SmallText.read(fstab, limit: 1 << 16) ?? "").contains { $0[1] == path }
    }

    /// Whether the folder is in memory: all that the device is told is gone with the power.
    var isInMemory: Bool { isOverlayInMemory(folder, mounts()) }

    /// Whether what would be mounted as a stick is a part of the system's own disk, as where the device boots from USB.
    func isOwnDisk(_ path: String) -> Bool {
        let device = "/dev/" + (path.split(separator: "/").last ?? "")
        return mountTable(mounts()).contains { $0[0] == device && isListed(String($0[1])) }
    }

    static func isMounted(_ path: String) -> Bool {
        var (own, above) = (stat(), stat())
        guard stat(path, &own) == 0 else { return false }
        return stat(Host.folder(ofPath: path), &above) != 0 || own.st_dev != above.st_dev
    }
}

extension Configuration {
    /// The configuration that came from a card, beside `waypost.toml`.
    static let importedName = "imported.toml"

    /// The file that counts where `path` is asked for: what came from a card stands in for it.
    package static func inForce(_ path: String) -> String {
        guard path == "waypost.toml" || path.hasSuffix("/waypost.toml") else { return path }
        let imported = "\(folder(ofPath: path))/\(importedName)"
        return access(imported, F_OK) == 0 ? imported : path
    }
}

/// The user that the service runs as: its files must be its own.
struct ServiceOwner: Sendable {
    private(set) var ids: FileOwner?

    /// Root asks for the owner of the state directory, or for the user `waypost`; anybody else for himself.
    ///
    /// A directory of root's is one that the service has not had yet, such as a new partition.
    init(stateDirectory: String) {
        guard geteuid() == 0 else { return }
        var figures = stat()
        if stat(stateDirectory, &figures) == 0, figures.st_uid != 0 {
            ids = FileOwner(user: figures.st_uid, group: figures.st_gid)
        } else if let user = getpwnam("waypost") {
            ids = FileOwner(user: user.pointee.pw_uid, group: user.pointee.pw_gid)
        }
    }

    /// Makes the directories of the service, as its own.
    func prepare(_ configuration: Configuration) throws {
        try configuration.prepareDirectories()
        own(configuration.stateDirectory)
        own(configuration.runtimeDirectory)
    }

    /// Gives a directory of root's to the service.
    ///
    /// By a descriptor, and not through a symbolic link: the folder above may be another user's.
    func own(_ directory: String) {
        let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
        guard let ids, let folder = try? Descriptor(opening: directory, flags) else { return }
        var figures = stat()
        guard fstat(folder.number, &figures) == 0, figures.st_uid == 0 else { return }
        try? folder.give(to: ids, directory)
    }
}
