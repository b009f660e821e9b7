// The paths that a card or stick import uses, its restart marker, and the service's user.
import CLinux
import Configuration
import Glibc
import Host
import HTTP
import Setup

/// The paths of an import, and checks on them; a test replaces the system's paths.
package struct ImportPaths: Sendable {
    /// `/etc/waypost`.
    let folder: String
    /// The configuration that people edit on the device; the imported one is in the same folder.
    let configuration: String
    /// systemd's store of credentials (systemd.exec(5), LoadCredential=).
    let credentials: String
    /// The gateway's runtime directory, where `status` finds problems with a card.
    let runtime: String
    /// The gateway's state directory, as in its unit.
    let state: String
    /// Lists the folders that should be mounted.
    var fstab = "/etc/fstab"
    /// Exists if the initramfs found no data partition; all files are then lost at power-off.
    var notKept = "/run/waypost-not-kept"
    /// The board's own number (Devicetree Specification, 2.3: `serial-number` of the root).
    var boardSerial = "/proc/device-tree/serial-number"
    /// Differs after each boot.
    var bootID = "/proc/sys/kernel/random/boot_id"
    /// Returns the table of mounted file systems.
    var mounts: @Sendable () -> String = currentMounts
    /// Returns whether a folder is on another file system than its parent.
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

    /// The folder that only the import itself reads.
    var journal: String { "\(folder)/import" }

    /// The file of a code that waits for the network.
    var code: String { "\(journal)/\(CardFile.code.rawValue)" }

    /// A file that exists while an import is not verified by the server.
    var unverified: String { "\(journal)/unverified" }

    var token: String { "\(credentials)/\(Token.credential)" }

    var keys: String { "\(credentials)/\(StoreKeys.credential)" }

    /// Files of a committed import; deleted after all have been moved to their destination.
    var pending: String { "\(journal)/pending" }

    /// Exists from just before an import takes effect until the service is restarted.
    ///
    /// A reboot may delete it, because a reboot restarts the service.
    private var behind: String { "\(runtime)/import-not-told" }

    /// True if the service still runs with the previous files and all new ones are in place.
    package var isServiceBehind: Bool { access(behind, F_OK) == 0 && access(pending, F_OK) != 0 }

    /// Called before an import takes effect.
    func recordServiceIsBehind(_ owner: ServiceOwner) {
        makeRuntime(owner)
        // If this fails, the service is still restarted, unless this process is killed first.
        try? SmallFile.replace(behind, [], mode: 0o644, owner: owner.ids, isSynced: false)
    }

    /// Called when the service is restarted, or is about to be.
    package func recordServiceRestarted() { unlink(behind) }

    func makeRuntime(_ owner: ServiceOwner) {
        if mkdir(runtime, 0o755) == 0 { owner.own(runtime) }
    }

    /// Returns the path of a stored secret; nil for the configuration.
    func secret(_ file: CardFile) -> String? {
        switch file {
        case .configuration: nil
        case .token: token
        case .code: code
        case .keys: keys
        }
    }

    /// Returns whether an imported file is still stored; true for the configuration.
    ///
    /// A code counts as stored while the token obtained with it exists. A configuration that a
    /// person deleted is not imported again.
    func has(_ file: CardFile) -> Bool {
        let files = file == .code ? [code, token] : secret(file).map { [$0] } ?? []
        return files.isEmpty || files.contains { access($0, F_OK) == 0 || errno != ENOENT }
    }

    /// Returns whether fstab(5) lists a mount point.
    func isListed(_ path: String) -> Bool {
        mountTable(SmallText.read(fstab, limit: 1 << 16) ?? "").contains { $0[1] == path }
    }

    /// True if the folder is in memory, so that a power cut loses every import.
    var isInMemory: Bool { isOverlayInMemory(folder, mounts()) }

    /// Returns whether a stick is part of the system's own disk, as on a device booted from USB.
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
