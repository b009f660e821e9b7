// All settings of the gateway.
package import Audio
package import Beacons
package import Configuration
import Glibc
import Host
package import Live
package import Location
package import MQTT
package import Proxy
package import Queue
package import Records
package import Remote
package import Schedule
package import Upload

/// All settings, one property per section of the file (waypost.toml(5)).
package struct Configuration: Configurable {
    /// `auto`, or the id to use; `DeviceID.resolve` gives the effective one.
    package var deviceID = "auto"
    package var stateDirectory = "/var/lib/waypost"
    package var runtimeDirectory = "/run/waypost"
    package var upload = UploadSettings()
    package var beacons = BeaconSettings()
    package var location = LocationSettings()
    package var audio = AudioSettings()
    package var soundUpload = SoundUploadSettings()
    package var schedules = ScheduleSettings()
    package var site = SiteSettings()
    package var storage = StorageSettings()
    package var streams = StreamNames()
    package var health = HealthSettings()
    /// `[mqtt]`: the broker.
    package var mqtt = BrokerSettings()
    /// `[mqtt]`: what is published there.
    package var live = LiveSettings()
    package var proxy = ProxySettings()
    package var effort = EffortSettings()
    package var remote = RemoteSettings()
    /// Each `[stream.NAME]`, in the order of the file.
    package var userStreams: [UserStream] = []
    /// `metrics.textfile`: the path of the metrics for Prometheus.
    package var metricsTextfile: String?
    /// `led.name`: the LED that shows the state; `auto`, `off` or a name in /sys/class/leds.
    package var led = "auto"
    /// `import.stick`: a stick may bring a configuration and secrets; set only in the device file.
    package var allowsSticks = true
    package var logLevel = LogLevel.info
    /// The version of the server's settings among these values; nil: none.
    package var settingsVersion: Int64?

    package init() {}

    /// The lowest severity that is logged.
    package enum LogLevel: String, Sendable, CaseIterable {
        case error
        case warning
        case info
        case debug
    }

    package static let table = KeyTable<Configuration>(UserStream.tables)

    package static var keys: [Key<Self>] {
        Key("device_id", \.deviceID, .deviceID).fixed()
            .says("Name of this device at the server; \"auto\" makes a UUID once and keeps it.")
        Key("state_directory", \.stateDirectory, .path()).fixed(orBy: "STATE_DIRECTORY")
            .says("Database, device id and snapshot; systemd's $STATE_DIRECTORY wins over it.")
        Key("runtime_directory", \.runtimeDirectory, .path(limit: 90))
            .fixed(orBy: "RUNTIME_DIRECTORY")
            .says("Control socket; systemd's $RUNTIME_DIRECTORY wins over it.")
        Key("schedule_offset", \.schedules.offset, .utcOffset)
            .remote().says(
                "Offset from UTC of the times of day in schedules, all year: there is no summer time."
            )
        UploadSettings.keys.map { $0.within("upload", \.upload) }
        BeaconSettings.keys.map { $0.within("beacons", \.beacons) }
        Key("beacons.schedule", \.schedules.beaconWindows, .windows)
            .remote().says("When to listen for beacons; always if it is empty.")
        LocationSettings.keys.map { $0.within("location", \.location) }
        Key("location.fixed", optional: \.schedules.fixed, .position, example: .example)
            .says(
                "The site's position, for the sun and for files, where no GNSS receiver gives one."
            )
        AudioSettings.keys.map { $0.within("audio", \.audio) }
        SoundUploadSettings.keys.map { $0.within("audio", \.soundUpload) }
        Key("audio.schedule", \.schedules.audioWindows, .windows)
            .remote().says("When to record sound; always if it is empty.")
        Key("audio.duty", optional: \.schedules.audioDuty, .duty, example: .example)
            .remote().says(
                "The first part of each period, inside the windows, on a grid from midnight UTC."
            )
        SiteSettings.keys.map { $0.within("site", \.site) }
        StorageSettings.keys.map { $0.within("storage", \.storage) }
        StreamNames.keys.map { $0.within("streams", \.streams) }
        HealthSettings.keys.map { $0.within("health", \.health) }
        BrokerSettings.keys.map { $0.within("mqtt", \.mqtt) }
        LiveSettings.keys.map { $0.within("mqtt", \.live) }
        ProxySettings.keys.map { $0.within("proxy", \.proxy) }
        EffortSettings.keys.map { $0.within("effort", \.effort) }
        RemoteSettings.keys.map { $0.within("remote", \.remote) }
        Key("metrics.textfile", optional: \.metricsTextfile, .path(), example: exampleTextfile)
            .says("Figures for Prometheus, written every few seconds; the service must be able to.")
        Key("led.name", \.led, .led)
            .says("LED that shows how the gateway is; \"auto\" is a Raspberry Pi's activity LED.")
        Key("import.stick", \.allowsSticks, .boolean).onlyOnDevice()
            .says(
                "A USB stick may bring a configuration; only waypost.toml on the device can set it."
            )
            .onCard("take the line out, and set it in /etc/waypost/waypost.toml on the device")
        Key("log.level", \.logLevel, .choice()).remote().says("Least grave message that is logged.")
    }

    private static let exampleTextfile = "/var/lib/prometheus/node-exporter/waypost.prom"

    package var violations: [Violation] {
        upload.violations.map { $0.within("upload") }
            + beacons.violations.map { $0.within("beacons") }
            + audio.violations.map { $0.within("audio") }
            + site.violations.map { $0.within("site") }
            + storage.violations.map { $0.within("storage") }
            + streams.violations.map { $0.within("streams") } + sharedWireNames
            + mqtt.violations.map { $0.within("mqtt") } + wrongTopics
            + proxy.violations.map { $0.within("proxy") } + proxyWithoutBeacons
    }

    private var proxyWithoutBeacons: [Violation] {
        guard proxy.isEnabled, !beacons.isEnabled else { return [] }
        return [
            Violation(
                ["proxy.esphome", "beacons.enabled"],
                "the proxy passes on what [beacons] hears, and beacons.enabled is false",
                allowed: "true with beacons.enabled = true"
            )
        ]
    }

    /// Returns the wire name of any stream, including those of users.
    package func wire(of stream: Stream) -> String {
        userStreams.first { $0.name == stream.name }?.wire ?? streams[stream.name]
    }

    // MARK: From the file

    /// Reads and checks a file, or the imported one that replaces it, together with the
    /// environment.
    ///
    /// The settings from the server lie above the file, if `remote.allow` permits them; a warning
    /// says why they do not. `settings` are tried instead of the stored ones, and their errors
    /// thrown.
    /// Throws all errors at once.
    package static func load(
        path asked: String,
        environment: [String: String],
        trying settings: StoredSettings.Version? = nil
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        let path = inForce(asked)
        let file: SmallFile
        do {
            file = try SmallFile.read(path, limit: KeyTable<Self>.largestFile, wait: true)
        } catch {
            var errors = ConfigurationErrors([unreadable(path, error)])
            errors.isUnread = error.code == EIO
            throw errors
        }
        var loaded = try check(file.bytes, file: path, environment: environment)
        do {
            try loaded.put(settings, over: file.bytes, path, environment, isCard: path != asked)
        } catch {
            if settings != nil { throw error }
            loaded.warnings += error.problems.map { problem in
                var problem = problem
                problem.message += "; the settings of the server are not in force"
                return problem
            }
        }
        if path != asked {
            loaded.values.upload.isFromCard = true
            loaded.values.mqtt.isFromCard = true
            let own = StickPermission(file: asked)
            loaded.values.allowsSticks = own.isGiven
            loaded.origins[StickPermission.key] = own.origin
            if var fault = own.fault {
                fault.message += "; no stick is used until this is corrected"
                loaded.warnings.append(fault)
            }
            if own.fileSetsOthers {
                let message =
                    "is not read, except for \(StickPermission.key): \(path), which came from a card, "
                    + "replaces it"
                loaded.warnings.append(ConfigurationProblem(place: asked, message: message))
            }
        }
        // Keys from the environment are not in the file.
        if case .environment = loaded.origins["beacons.bindkeys"] { return loaded }
        if !loaded.values.beacons.bindkeys.isEmpty, file.mode & 0o007 != 0 {
            let name = printable(path, limit: 4096)
            let message =
                "holds beacons.bindkeys, and every user may read it; "
                + "`sudo chown root:waypost \(name)`, `sudo chmod 640 \(name)`"
            loaded.warnings.append(ConfigurationProblem(place: name, message: message))
        }
        return loaded
    }

    /// Checks the bytes of a file with the environment; `file` is its name in messages.
    ///
    /// Throws all errors at once. `isFromCard`: also rejects keys that a card or stick cannot set.
    package static func check(
        _ bytes: [UInt8],
        file: String,
        environment: [String: String],
        isFromCard: Bool = false,
        layer: ConfigurationLayer? = nil
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        try table.read(
            bytes,
            file: file,
            environment: environment,
            isFromCard: isFromCard,
            layer: layer
        ) { configuration in
            guard configuration.upload.target == nil else {
                let size = configuration.sizeAdvice(nil).map { "\($0.what); \($0.next)" }
                return configuration.budgetAdvice ?? size
            }
            return "upload.endpoint is not set: nothing is uploaded"
                + (configuration.upload.isRequired
                    ? " and nothing collected; set it, or upload.required = false" : "")
        }
    }

    /// Returns the valid parts of a file, which may be invalid or unreadable.
    package static func validParts(path: String, environment: [String: String]) -> Self {
        let file = try? SmallFile.read(inForce(path), limit: KeyTable<Self>.largestFile, wait: true)
        return table.rightParts(of: file?.bytes ?? [], environment: environment)
    }

    /// Counts a start of the program during a trial of settings, which may be what ended it before;
    /// returns whether that ended the trial, so that the configuration has to be read again.
    package func countStart() -> Bool {
        guard settingsVersion != nil else { return false }
        if case .running = DaemonPresence(stateDirectory: stateDirectory) { return false }
        return StoredSettings.countStart(in: stateDirectory)
    }

    /// Returns the valid parts of an invalid or unreadable file, enough to find a running gateway.
    ///
    /// nil if none runs.
    package static func ofRunningGateway(
        path: String,
        environment: [String: String]
    ) -> Self? {
        let parts = validParts(path: path, environment: environment)
        guard case .running = DaemonPresence(stateDirectory: parts.stateDirectory) else {
            return nil
        }
        return parts
    }

    private static func unreadable(_ path: String, _ error: SystemError) -> ConfigurationProblem {
        let message =
            switch error.code {
            case ENOENT:
                "the file does not exist; `waypost config default > \(path)` makes one"
            case EACCES:
                "cannot be read: \(error.reason); run as root or as a member of the group waypost"
            default: "cannot be read: \(error.reason)"
            }
        return ConfigurationProblem(place: path, message: message)
    }

    // MARK: As text

    /// The file that `waypost config default` prints: every key, its default and allowed values.
    package static var defaultText: String {
        """
        # Configuration of Waypost. Each key is listed with its default; a key without one is
        # commented out. Check a change with `waypost config check`.
        # The environment overrides a key: WAYPOST_UPLOAD_ENDPOINT is upload.endpoint.

        """ + table.commented
    }

    /// The list of keys in waypost.toml(5), in scdoc(5) format.
    package static var manual: String { table.manual }
}

package typealias LoadedConfiguration = Loaded<Configuration>

extension Loaded<Configuration> {
    /// Puts settings of the server above the file, `tried` or else those that are stored, if
    /// `remote.allow` permits them; throws their errors.
    fileprivate mutating func put(
        _ tried: StoredSettings.Version?,
        over file: [UInt8],
        _ path: String,
        _ environment: [String: String],
        isCard: Bool
    ) throws(ConfigurationErrors) {
        guard values.remote.allowsSettings else { return }
        let version: StoredSettings.Version?
        do {
            version = try tried ?? StoredSettings.read(in: values.stateDirectory).current
        } catch {
            throw ConfigurationErrors([ConfigurationProblem(place: "settings", message: "\(error)")]
            )
        }
        guard let version else { return }
        let layer = ConfigurationLayer(
            name: "settings \(version.number)",
            text: version.text,
            isBelowFile: isCard
        )
        self = try Configuration.check(file, file: path, environment: environment, layer: layer)
        values.settingsVersion = version.number
    }
}

extension Loaded<Configuration> {
    /// The output of `waypost config show`: the effective values as TOML, each with its origin.
    package var shown: String { Configuration.table.shown(self) }
}

extension ValueFormat where Value == String {
    fileprivate static let led = ValueFormat.text(
        "\"auto\", \"off\", or a name in /sys/class/leds",
        no: "LED name",
        isValid: LEDName.isName
    )
    fileprivate static let deviceID = ValueFormat.text(
        "\"auto\", or 1 to 64 of the characters A-Z a-z 0-9 . _ -, no dot first",
        problem: DeviceID.problem
    )
}
