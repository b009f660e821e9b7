// The seam between an upgrade and the gateway that is upgraded.
package import Host

/// The parts of a running gateway, and of the machine, that an upgrade uses.
package protocol UpgradeDevice: Sendable {
    var deviceID: String { get }
    /// The version of this program, without Debian's epoch and revision.
    var version: String { get }
    /// Why no upgrade is possible on this machine; nil if one is.
    var obstacle: String? { get }
    /// The number of the newest record of each source.
    var newest: [String: Int64] { get }
    /// The result that root's unit wrote last; nil if there is none.
    var result: String? { get }

    /// Returns how the device is now.
    func before() -> SettingsGate.Before

    /// Returns what happened since a time.
    func observe(since: BootInstant, _ before: SettingsGate.Before) -> SettingsGate.Observation

    /// Reads what is stored; nil if nothing is. Throws if that cannot be read.
    func read() throws -> StoredUpgrade?

    /// Replaces what is stored; it is on the disk when this returns.
    func write(_ stored: StoredUpgrade) throws

    /// Asks root's unit for a version.
    func request(_ version: String) throws

    /// Reports to root's unit that this version stays.
    func declareGood(_ version: String) throws

    /// Records its health each minute, if `isOn`, so that there is something to upload.
    func recordHealth(_ isOn: Bool)

    /// Uploads at once.
    func upload()

    func warn(_ what: String)
}
