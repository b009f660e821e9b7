// Implements `waypost enroll`: verifies a token or code and configures the gateway with it.
import CLinux
import Configuration
import Glibc
import Host
import HTTP
import Setup
import Status
import Upload

/// Enrols this device, and stores its token, endpoint and configuration.
package struct Onboarding {
    /// The proof that a person was given for the device: a token or a code.
    package enum Proof: Sendable {
        /// A file that holds the device token.
        case tokenFile(String)
        /// A code that can be exchanged once for a token.
        case code(String)
    }

    private let path: String
    private let environment: [String: String]
    private let version: String

    /// `path`: the configuration file, which is made if missing.
    package init(configuration path: String, environment: [String: String], version: String) {
        // Absolute, because the token lies beside it and its path is written into it.
        self.path = absolute(Configuration.inForce(path))
        self.environment = environment
        self.version = version
    }

    /// Enrols at a server; returns one line per step done.
    ///
    /// An endpoint without a path gets `/api/ingest` if a Waypost server answers there.
    /// Throws a Failure or ConfigurationErrors; then nothing in force has changed, and the same
    /// code can be used again.
    package func enrol(at server: ServerChoice, with proof: Proof) throws -> [String] {
        try requireRights()
        let old = try currentText()
        let before = try Configuration.check(old, file: path, environment: environment).values
        guard before.upload.destination == .ingest else {
            throw Failure("\(path): upload.destination is s3, and a bucket cannot enrol devices")
        }
        let tokenFile = before.upload.tokenFile ?? folder + "/token"
        let certificate = try server.certificate()
        let (text, configuration) = try chosen(old, before, server, tokenFile)
        let owner = ServiceOwner(stateDirectory: configuration.stateDirectory)
        try owner.prepare(configuration)
        // The copy of the certificate is in force once the server was verified with it.
        let trial = configuration.trusting(server.caFile)
        let token = try token(proof, trial, owner)
        let answer = try verify(token, of: proof, trial)
        try store(token, configuration, owner)
        if let certificate {
            try Self.reporting { try SmallFile.replace(copyPath, certificate, mode: 0o644) }
        }
        try Self.reporting { try SmallFile.replace(path, text, mode: 0o644, keepsOwner: true) }
        AskedToken(configuration: configuration).forget()
        var lines = ["token: \(tokenFile)", "configuration: \(path)"]
        switch answer {
        case .accepted:
            let endpoint = configuration.upload.endpoint ?? server.endpoint
            try configuration.enrolmentMark.write(endpoint, owner: owner.ids)
            lines.insert("the server accepts this device", at: 0)
        case .cannotBeAsked:
            lines.insert(
                "the server answers, but cannot verify a device: "
                    + "this one is enrolled by the first events that it accepts",
                at: 0
            )
        }
        if isOverlayInMemory(folder, currentMounts()) {
            lines.append(
                "\(folder) is in memory, an overlay above the disk: all of this is lost when the power fails"
            )
        }
        return lines + [reload(configuration)]
    }

    private var folder: String { Host.folder(ofPath: path) }

    /// The copy of `--ca-file`, where the service can read it.
    private var copyPath: String { folder + "/ca.pem" }

    /// Throws if `sudo` was forgotten, before an error could suggest changing directory owners.
    private func requireRights() throws(Failure) {
        guard access(folder, W_OK) != 0, errno == EACCES else { return }
        throw Failure("\(folder): this user may not write there; `sudo waypost enroll` may")
    }

    private func currentText() throws -> [UInt8] {
        do throws(SystemError) {
            return try SmallFile.read(path, limit: KeyTable<Configuration>.largestFile).bytes
        } catch {
            guard error.code == ENOENT else { throw Failure("\(path): \(error.reason)") }
            return []
        }
    }

    /// Returns the file for the server, with the path of a Waypost server if it needs one.
    private func chosen(
        _ old: [UInt8],
        _ before: Configuration,
        _ server: ServerChoice,
        _ tokenFile: String
    ) throws -> (text: [UInt8], values: Configuration) {
        if let full = server.withPath {
            let edited = try edited(old, before, full, tokenFile)
            let trial = transport(edited.values.trusting(server.caFile))
            if try ServerChoice.isWaypost(trial) { return edited }
        }
        return try edited(old, before, server, tokenFile)
    }

    /// Returns the file with the server's keys set, and its values.
    private func edited(
        _ old: [UInt8],
        _ before: Configuration,
        _ server: ServerChoice,
        _ tokenFile: String
    ) throws -> (text: [UInt8], values: Configuration) {
        var text = ConfigurationEdit(String(decoding: old, as: UTF8.self))
        var wanted = before
        server.apply(to: &text, &wanted.upload, certificate: copyPath)
        text.set("token_file", to: tokenFile, in: "upload")
        let bytes = Array(text.text.utf8)
        wanted.upload.tokenFile = tokenFile
        let after = try reread(bytes)
        guard let after, after == wanted else {
            throw Failure(
                "\(path): cannot be edited automatically (the environment overrides a key, or [upload] is in an "
                    + "unexpected place); set upload.endpoint and upload.token_file there, then try again"
            )
        }
        return (bytes, after)
    }

    /// Returns the values of the changed file; nil if the change made it invalid TOML.
    ///
    /// Throws the errors of the new values.
    private func reread(_ bytes: [UInt8]) throws -> Configuration? {
        guard KeyTable<Configuration>.isTOML(bytes) else { return nil }
        return try Configuration.check(bytes, file: path, environment: environment).values
    }

    private func transport(_ configuration: Configuration) -> TransportSettings {
        let upload = configuration.upload
        return upload.transport(upload.endpoint ?? "", userAgent: "waypost/\(version)")
    }

    // MARK: Token

    private func token(
        _ proof: Proof,
        _ configuration: Configuration,
        _ owner: ServiceOwner
    ) throws -> String {
        switch proof {
        case .tokenFile(let file):
            return try Token.read(source: file, for: configuration.upload.endpoint)
        case .code(let code):
            let transport = transport(configuration)
            // The old token stays in force until the server has accepted this one.
            let token = try Self.reporting {
                try Self.exchange(code, configuration, owner, transport)
            }
            return try Token.token(in: Array(token.utf8), "the token that the server gave")
        }
    }

    private func verify(
        _ token: String,
        of proof: Proof,
        _ configuration: Configuration
    ) throws -> Enrolment.Outcome {
        do {
            let transport = transport(configuration)
            return try Enrolment.verify(transport, token: token, until: StopSignal())
        } catch let failure as Failure {
            guard case .code = proof else { throw failure }
            let next = "the token that the code gave is stored: run the same command again to go on"
            throw Failure("\(failure.message); \(next)", code: failure.code)
        }
    }

    /// Exchanges a code for this device's token at the configured server; see `AskedToken`.
    static func exchange(
        _ code: String,
        _ configuration: Configuration,
        _ owner: ServiceOwner,
        _ transport: TransportSettings
    ) throws -> String {
        try owner.prepare(configuration)
        let state = configuration.stateDirectory
        let device = try DeviceID.resolve(
            configuration.deviceID,
            stateDirectory: state,
            owner: owner.ids
        )
        let asked = AskedToken(configuration: configuration, owner: owner.ids)
        return try asked.exchange(code, for: device, transport)
    }

    /// Stores the token bound to its server, so that it is never sent to another one.
    private func store(
        _ token: String,
        _ configuration: Configuration,
        _ owner: ServiceOwner
    ) throws {
        guard let file = configuration.upload.tokenFile else { return }
        let text = BoundSecret.text(token, for: configuration.upload.server) + "\n"
        try Self.reporting {
            try SmallFile.replace(file, Array(text.utf8), mode: 0o600, owner: owner.ids)
        }
    }

    private static func reporting<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as SystemError {
            throw Failure("\(error); `sudo waypost enroll` may")
        }
    }

    /// Asks a running gateway to reload; returns a line about the result.
    private func reload(_ configuration: Configuration) -> String {
        do {
            _ = try ControlClient(configuration).ask(.init(.reload))
            return "the running gateway reloads it; `waypost status` shows the result"
        } catch ControlRefusal.gone {
            return "`sudo systemctl enable --now waypost` starts the gateway"
        } catch {
            return "run `sudo systemctl reload waypost` to make the gateway use it"
        }
    }
}

extension Configuration {
    /// Returns the same configuration with the certificate of another file, if one is named.
    fileprivate func trusting(_ file: String?) -> Self {
        var trial = self
        if let file { trial.upload.caFile = absolute(file) }
        return trial
    }
}
