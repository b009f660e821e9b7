// The seam between settings from the server and the gateway that they configure.
package import Host

/// The parts of a running gateway that a trial of settings uses.
package protocol SettingsDevice: Sendable {
    var deviceID: String { get }
    /// The version that is in force; nil: the device's own file alone.
    ///
    /// It differs from the stored one until a reload, and while the file cannot be read.
    var applied: Int64? { get }

    /// Checks a version above the device's own file; returns how the device is before its trial.
    ///
    /// Throws a `Failure` that says why it cannot be in force.
    func prepare(_ version: StoredSettings.Version) throws -> SettingsGate.Before

    /// Returns what happened since a time, in a trial that began at `began`.
    func observe(since: BootInstant, _ before: SettingsGate.Before, began: WallTime?)
        -> SettingsGate.Observation

    /// Reads what is stored; throws if that cannot be read.
    func read() throws -> StoredSettings

    /// Replaces what is stored; it is on the disk when this returns.
    func write(_ stored: StoredSettings) throws

    /// Reads the configuration again, with the version that is stored.
    func reload()

    /// Shows the settings in the status.
    func publish(_ stored: StoredSettings)

    func warn(_ what: String)
}
