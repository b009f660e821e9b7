// Finds what would keep a device with a valid configuration from collecting or uploading.
import Audio
import Beacons
import Configuration
import Glibc
import Host
import Location
import MQTT
import Proxy
import Schedule
package import Setup
import Upload

/// Checks the files and sound devices that a valid configuration names (`waypost config check`).
package struct CollectionCheck {
    private let configuration: Configuration
    private let environment: [String: String]

    package init(_ configuration: Configuration, environment: [String: String]) {
        self.configuration = configuration
        self.environment = environment
    }

    /// One line per problem: what is wrong with which named thing, and the remedy.
    package var problems: [String] {
        let authorities = [("upload", upload.caFile), ("mqtt", mqtt.caFile)]
        return secretFiles.compactMap(secretProblem)
            + authorities.compactMap { section, file in
                file.flatMap { authorityProblem($0, "\(section).ca_file") }
            } + [proxyKeyProblem].compactMap { $0 } + soundProblems + scheduleProblems
    }

    /// Filters that also match the gateway's own messages, and a file that this user may not check.
    package var remarks: [String] {
        let files = secretFiles + [proxyKeyFile].compactMap { $0 }
        return configuration.filtersOfOwnMessages
            + files.filter(isHidden).prefix(1).map {
                "\($0): this user may not read it; `sudo waypost config check` checks it, too"
            }
    }

    private var upload: UploadSettings { configuration.upload }

    private var mqtt: BrokerSettings { configuration.mqtt }

    /// The files with secrets that are sent somewhere.
    var secretFiles: [String] {
        let own = upload.destination == .s3 ? upload.credentialsFile : upload.tokenFile
        // Without a file, the service may have a credential, which only systemd shows it.
        let files = [upload.target == nil ? nil : own, mqtt.url == nil ? nil : mqtt.passwordFile]
        return files.compactMap { $0 }
    }

    private func isHidden(_ file: String) -> Bool {
        geteuid() != 0 && access(file, R_OK) != 0 && errno == EACCES
    }

    private func secretProblem(_ file: String) -> String? {
        guard !isHidden(file) else { return nil }
        do throws(Failure) {
            if file == mqtt.passwordFile {
                _ = try mqtt.password(environment)
            } else {
                _ = try upload.secret(environment)
            }
        } catch {
            return error.message
        }
        return ownerProblem(file)
    }

    private var proxyKeyFile: String? {
        configuration.proxy.isEnabled ? configuration.proxy.keyFile : nil
    }

    private var proxyKeyProblem: String? {
        guard let file = proxyKeyFile, !isHidden(file) else { return nil }
        do throws(Failure) {
            _ = try ProxyKey.read(file)
        } catch {
            return error.message
        }
        return ownerProblem(file)
    }

    /// Returns what keeps the service's user from reading a secret that root can read.
    func ownerProblem(_ file: String) -> String? {
        // Known to root only: nobody else can read another user's secret.
        let owner = ServiceOwner(stateDirectory: configuration.stateDirectory).ids
        var figures = stat()
        guard let owner, stat(file, &figures) == 0, figures.st_uid != owner.user else { return nil }
        return "\(file): belongs to another user than the gateway's; "
            + "run: chown \(owner.user):\(owner.group) \(file)"
    }

    private func authorityProblem(_ file: String, _ key: String) -> String? {
        do throws(Failure) {
            _ = try CertificateFile.read(file)
            return nil
        } catch {
            return "\(key): \(error.message)"
        }
    }

    private var scheduleProblems: [String] {
        let schedules = configuration.schedules
        return problems(of: schedules.audio, "audio", configuration.audio.isEnabled)
            + problems(of: schedules.beacons, "beacons", configuration.beacons.isEnabled)
    }

    private func problems(of schedule: Schedule, _ source: String, _ isEnabled: Bool) -> [String] {
        guard isEnabled, !schedule.isAlways else { return [] }
        let position = configuration.schedules.fixed
        if position == nil, schedule.needsSun, !configuration.location.isEnabled {
            return [
                "\(source).schedule follows the sun, and nothing gives a position: "
                    + "set location.fixed, or location.enabled = true"
            ]
        }
        let now = SystemClock().wall()
        return schedule.windows.compactMap { window in
            let alone = Schedule(windows: [window], duty: schedule.duty, offset: schedule.offset)
            guard position != nil || !alone.needsSun,
                case let state = alone.state(at: now, position: position),
                !state.isOpen, state.next == nil
            else { return nil }
            let cycle = schedule.duty.map { " with \(source).duty = \"\($0.text)\"" } ?? ""
            return "\(source).schedule: \"\(window.text)\" does not open within a year\(cycle)"
        }
    }

    private var soundProblems: [String] {
        guard configuration.audio.isEnabled else { return [] }
        return AudioCards.undefinedNames(configuration.audio.devices).map {
            "audio.device: ALSA has no device \"\($0)\"; `waypost devices` lists what is here, "
                + "and asound.conf may define more"
        }
    }
}
