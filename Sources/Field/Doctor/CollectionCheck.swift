// Finds what would keep a device with a valid configuration from collecting or uploading.
import Audio
import Configuration
import Glibc
import Host
import Proxy
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
        [secretProblem, authorityProblem, proxyKeyProblem].compactMap { $0 } + soundProblems
    }

    /// The file that this user may not check; nil if everything was checked.
    package var remark: String? {
        let files = [secretFile, proxyKeyFile].compactMap { $0 }
        guard let file = files.first(where: isHidden) else { return nil }
        return "\(file): this user may not read it; `sudo waypost config check` checks it, too"
    }

    private func isHidden(_ file: String) -> Bool {
        geteuid() != 0 && access(file, R_OK) != 0 && errno == EACCES
    }

    private var upload: UploadSettings { configuration.upload }

    private var secretFile: String? {
        upload.destination == .s3 ? upload.credentialsFile : upload.tokenFile
    }

    private var secretProblem: String? {
        // Without a file, the service may have a credential, which only systemd shows it.
        guard upload.target != nil, let file = secretFile, !isHidden(file) else { return nil }
        do throws(Failure) {
            _ = try upload.secret(environment)
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

    private func ownerProblem(_ file: String) -> String? {
        // Known to root only: nobody else can read another user's secret.
        let owner = ServiceOwner(stateDirectory: configuration.stateDirectory).ids
        var figures = stat()
        guard let owner, stat(file, &figures) == 0, figures.st_uid != owner.user else { return nil }
        return "\(file): belongs to another user than the gateway's; "
            + "run: chown \(owner.user):\(owner.group) \(file)"
    }

    private var authorityProblem: String? {
        guard let file = upload.caFile else { return nil }
        do throws(Failure) {
            _ = try CertificateFile.read(file)
            return nil
        } catch {
            return "upload.ca_file: \(error.message)"
        }
    }

    private var soundProblems: [String] {
        guard configuration.audio.isEnabled else { return [] }
        return SoundCards.undefinedNames(configuration.audio.devices).map {
            "audio.device: ALSA has no device \"\($0)\"; `waypost devices` lists what is here, "
                + "and asound.conf may define more"
        }
    }
}
