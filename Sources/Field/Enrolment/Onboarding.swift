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

    /// The server to enrol at, as a person names it.
    package struct Server: Sendable {
        var endpoint: String
        /// A PEM file of additional authorities; nil: as configured.
        var caFile: String?
        /// Allows `http://` to another machine; otherwise as configured.
        var allowsPlaintext: Bool

        package init(endpoint: String, caFile: String? = nil, allowsPlaintext: Bool = false) {
            self.endpoint = endpoint
            self.caFile = caFile
            self.allowsPlaintext = allowsPlaintext
        }
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

    /// Enrols at `server`; returns one line per step done.
    ///
    /// Throws a Failure or ConfigurationErrors; then nothing in force has changed, and the same
    /// code can be used again.
    package func enrol(at server: Server, with proof: Proof) throws -> [String] {
        try requireRights()
        let old = try currentText()
        let before = try Configuration.check(old, file: path, environment: environment).values
        guard before.upload.destination == .ingest else {
            throw Failure("\(path): upload.destination is s3, and a bucket cannot enrol devices")
        }
        let authority = try server.caFile.map { try CertificateFile.read($0, waits: true) }
        var wanted = before
        wanted.upload.allowsPlaintext = before.upload.allowsPlaintext || server.allowsPlaintext
        wanted.upload.caFile = server.caFile.map(absolute) ?? before.upload.caFile
        wanted.upload.endpoint = try endpoint(server.endpoint, wanted.upload)
        wanted.upload.tokenFile = before.upload.tokenFile ?? folder + "/token"
        // As it is given, until the server has accepted this device.
        let transport = transport(wanted.upload)
        if let authority { wanted.upload.caFile = placeOfCopy(authority) }
        let (text, configuration) = try edited(old, before, wanted)
        let owner = ServiceOwner(stateDirectory: configuration.stateDirectory)
        try owner.prepare(configuration)
        let token = try token(proof, configuration, owner, transport)
        let answer = try verify(token, of: proof, transport)
        try store(token, configuration, owner)
        try store(authority, configuration)
        try Self.reporting { try SmallFile.replace(path, text, mode: 0o644, keepsOwner: true) }
        AskedToken(configuration: configuration).forget()
        var lines = [
            "endpoint: \(wanted.upload.endpoint ?? "")", "token: \(wanted.upload.tokenFile ?? "")",
            "configuration: \(path)",
        ]
        switch answer {
        case .accepted(let maxBody, _):
            if let maxBody {
                let advice = configuration.sizeAdvice(maxBody)
                lines.append(
                    advice.map { "warning: \($0.what): \($0.next)" }
                        ?? "largest upload: \(sizeText(maxBody))"
                )
            }
            try configuration.enrolmentMark.write(
                wanted.upload.endpoint ?? "",
                owner: owner.ids
            )
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

    /// Returns the file with the changed keys of `[upload]`, and its values.
    private func edited(
        _ old: [UInt8],
        _ before: Configuration,
        _ wanted: Configuration
    ) throws -> (text: [UInt8], values: Configuration) {
        var text = ConfigurationEdit(String(decoding: old, as: UTF8.self))
        let (was, upload) = (before.upload, wanted.upload)
        text.set("endpoint", to: upload.endpoint ?? "", in: "upload")
        text.set("token_file", to: upload.tokenFile ?? "", in: "upload")
        if upload.caFile != was.caFile {
            text.set("ca_file", to: upload.caFile ?? "", in: "upload")
        }
        if upload.allowsPlaintext, !was.allowsPlaintext {
            text.allow("allow_plaintext", in: "upload")
        }
        let bytes = Array(text.text.utf8)
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

    // MARK: Server

    /// Returns the endpoint to configure: one without a path gets `/api/ingest` if a Waypost server
    /// answers there.
    ///
    /// Throws ConfigurationErrors or a Failure that names the wrong option.
    private func endpoint(_ given: String, _ upload: UploadSettings) throws -> String {
        let parsed: Endpoint
        switch Endpoint.parse(given) {
        case .success(let endpoint): parsed = endpoint
        case .failure(let mismatch):
            throw refusal(given, mismatch.message)
        }
        guard parsed.isEncrypted || parsed.isLoopback || upload.allowsPlaintext else {
            throw refusal(
                given,
                "http:// would show the token and the data to anyone on the way; "
                    + "use https://, or add --allow-plaintext in a network that you trust"
            )
        }
        let host = given.hasSuffix("/") ? String(given.dropLast()) : given
        // Those of the scheme are the only slashes.
        guard host.utf8.count(where: { $0 == UInt8(ascii: "/") }) == 2, !given.contains("?")
        else { return given }
        var whole = upload
        whole.endpoint = host + "/api/ingest"
        let isServed = try Enrolment.isServed(transport(whole), until: StopSignal())
        return isServed ? host + "/api/ingest" : given
    }

    private func refusal(_ endpoint: String, _ message: String) -> ConfigurationErrors {
        let place = "--endpoint \(printable(endpoint))"
        return ConfigurationErrors([ConfigurationProblem(place: place, message: message)])
    }

    private func transport(_ upload: UploadSettings) -> TransportSettings {
        var settings = upload.transport(upload.endpoint ?? "", userAgent: "waypost/\(version)")
        settings.names.endpoint = "--endpoint"
        settings.names.certificates = "--ca-file"
        return settings
    }

    // MARK: Token

    private func token(
        _ proof: Proof,
        _ configuration: Configuration,
        _ owner: ServiceOwner,
        _ transport: TransportSettings
    ) throws -> String {
        switch proof {
        case .tokenFile(let file):
            return try Token.read(source: file, for: configuration.upload.endpoint)
        case .code(let code):
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
        _ transport: TransportSettings
    ) throws -> Enrolment.Outcome {
        do {
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
        _ transport: TransportSettings,
        as asker: FileOwner? = nil
    ) throws -> String {
        try owner.prepare(configuration)
        let state = configuration.stateDirectory
        let device = try DeviceID.resolve(
            configuration.deviceID,
            stateDirectory: state,
            owner: owner.ids
        )
        let asked = AskedToken(configuration: configuration, owner: owner.ids)
        return try asked.exchange(code, for: device, transport, as: asker)
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

    /// Returns the path for the copy: a file with other bytes stays, because it may be in use.
    private func placeOfCopy(_ authority: [UInt8]) -> String {
        var (path, number) = (folder + "/server-ca.pem", 1)
        while let file = try? SmallFile.read(path, limit: authority.count + 1),
            file.bytes != authority
        {
            number += 1
            path = folder + "/server-ca-\(number).pem"
        }
        return path
    }

    /// Stores a copy of the authority beside the configuration, where the service can read it.
    private func store(_ authority: [UInt8]?, _ configuration: Configuration) throws {
        guard let authority, let file = configuration.upload.caFile else { return }
        try Self.reporting { try SmallFile.replace(file, authority, mode: 0o644) }
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
            return "the running gateway reloads it and sends its first data within a minute; "
                + "`waypost status` shows it"
        } catch ControlError.gone {
            return "`sudo systemctl enable --now waypost` starts the gateway; its first data come "
                + "within a minute"
        } catch {
            return "run `sudo systemctl reload waypost` to make the gateway use it"
        }
    }
}
