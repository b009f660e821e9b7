// A secret is sent only to the server that it was given for.
import Configuration
import Foundation
import Host
import HTTP
import Status
import StatusBoard
import Support
import Testing
import Upload

@testable import Daemon
@testable import Field
import Setup

@Suite struct SecretServerTests {
    private static func configuration(_ server: String) -> String {
        "[upload]\nendpoint = \"\(server)/api/ingest\"\n"
    }

    private static let old = "https://old.example.org"

    /// A device with a secret for the old server, from a card that no longer holds it.
    private func device(_ file: String, _ secret: String) throws -> Device {
        let device = try Device()
        try device.put(Self.configuration(Self.old), "waypost.toml")
        try device.put(secret, file)
        #expect(try device.start().problems == [])
        return device
    }

    /// Another port, or the same host without encryption, is another server, too.
    @Test(arguments: [
        "https://new.example.org", "https://old.example.org:8443",
        "https://old.example.org.evil.example",
    ])
    func newServer_withoutItsToken_isRefused(_ server: String) throws {
        for (file, secret) in [("waypost.token", "old-token"), ("waypost.code", "OLDCODE")] {
            let device = try device(file, secret)
            let before = device.state
            try device.put(Self.configuration(server), "waypost.toml")
            let outcome = try device.start()
            #expect(outcome.imported == [])
            #expect(device.state == before)
            let problem = try #require(outcome.problems.first)
            #expect(problem.file == "waypost.toml")
            #expect(problem.what.contains("is for https://old.example.org"))
            #expect(problem.what.contains(server))
            #expect(problem.remedy.contains("waypost.token"))
            #expect(device.errors?.contains(problem.what) == true)
            #expect(device.problems == outcome.problems)
            // It may be that server's secret, too: then a person writes it again.
            try device.put(secret, file)
            #expect(try device.start().imported == [file, "waypost.toml"])
            #expect(device.errors == nil)
        }
    }

    @Test(arguments: [
        "https://OLD.example.org", "https://old.example.org:443",
        "https://old.example.org/of/a/proxy",
    ])
    func sameServer_writtenInAnotherWay_keepsItsToken(_ server: String) throws {
        let device = try device("waypost.token", "old-token")
        try device.put(Self.configuration(server), "waypost.toml")
        #expect(try device.start() == ImportOutcome(imported: ["waypost.toml"]))
        #expect(device.state[1] == "old-token\n# for https://old.example.org\n")
    }

    @Test func keysOfABucket_areForItsStore() throws {
        let bucket = { (host: String) in
            """
            [upload]
            destination = "s3"
            bucket_url = "https://\(host).example.org/data"

            """
        }
        let device = try Device()
        try device.put(bucket("old"), "waypost.toml")
        try device.put("AKIA1:secret", "waypost.s3")
        #expect(try device.start().problems == [])
        try device.put(bucket("new"), "waypost.toml")
        let outcome = try device.start()
        #expect(outcome.imported == [])
        #expect(outcome.problems.first?.what.contains("are for https://old.example.org") == true)
    }

    private static let evil = "https://evil.example.org"

    /// Imports a stick with this configuration and no secret.
    @discardableResult
    private func plug(_ text: String, into device: Device) throws -> ImportOutcome {
        let stick = TemporaryFolder("waypost")
        try stick.write(text, to: "waypost/waypost.toml")
        return try device.start(.stick, from: stick.path)
    }

    /// Returns the secret that the gateway would send to its configured server, or why it sends
    /// none.
    private func sent(by device: Device, from folder: String) throws -> Result<String, Failure> {
        let path = device.paths.configuration
        let upload = try Configuration.load(path: path, environment: [:]).values.upload
        let environment = ["CREDENTIALS_DIRECTORY": folder]
        return Result { () throws(Failure) in
            try Token.read(
                file: upload.tokenFile,
                environment: environment,
                for: upload.endpoint,
                onlyBound: upload.isFromCard
            )
        }
    }

    /// The device's own file, and the first stick; not in the macro, which crashes Swift 6.0.3.
    private static let histories: [(own: String, first: String?)] = [
        ("endpoint = \"\(old)/api/ingest\"", "required = false"),
        (
            "endpoint = \"\(old)/api/ingest\"",
            "destination = \"s3\"\nbucket_url = \"\(evil)/b\""
        ),
        ("endpoint = 7", nil),
    ]

    /// A token stored by hand is not bound to a server: two sticks in a row must not get it sent
    /// elsewhere.
    @Test(arguments: histories)
    func secretWithoutAName_goesToNoServerOfAStick(own: String, first: String?) throws {
        let device = try Device()
        try device.folder.write("[upload]\n\(own)\n", to: "etc/waypost.toml")
        try FileManager.default.createDirectory(
            atPath: device.paths.credentials,
            withIntermediateDirectories: true
        )
        try device.folder.write("unbound\n", to: "credstore/waypost.token")
        if let first {
            // It stays usable while the device's own file is in force.
            #expect(try sent(by: device, from: device.paths.credentials).get() == "unbound")
            #expect(try plug("[upload]\n\(first)\n", into: device).imported == ["waypost.toml"])
        }
        let outcome = try plug(Self.configuration(Self.evil), into: device)
        #expect(outcome.imported == [])
        #expect(outcome.problems.first?.what.contains("does not say which server") == true)
        #expect(device.text("etc/imported.toml")?.contains("evil.example.org/api") != true)
        // With its own token the configuration is imported, and that token is sent.
        try device.put(Self.configuration(Self.old), "waypost.toml")
        try device.put("token-1", "waypost.token")
        #expect(try device.start().imported == ["waypost.token", "waypost.toml"])
        #expect(try sent(by: device, from: device.paths.credentials).get() == "token-1")
    }

    /// systemd also has credentials from elsewhere (/run/credstore, the host of this machine): an
    /// import must not use them.
    @Test func credentialThatNoImportSees_goesToNoServerOfAStick() throws {
        let device = try Device()
        let elsewhere = TemporaryFolder()
        let secret = "unbound\n"
        try elsewhere.write(secret, to: "waypost.token")
        try plug(Self.configuration(Self.evil), into: device)
        var refusal: Failure?
        if case .failure(let failure) = try sent(by: device, from: elsewhere.path) {
            refusal = failure
        }
        #expect(refusal?.message.contains("waypost.token: does not say which server") == true)
        #expect(refusal?.message.contains("`sudo waypost enroll`") == true)
        // As the message says: a person who knows that it is for this server adds that line.
        try elsewhere.write(secret + "# for \(Self.evil)\n", to: "waypost.token")
        #expect(try sent(by: device, from: elsewhere.path).get() == "unbound")
    }

    @Test func keysThatNoImportSees_goToNoBucketOfAStick() throws {
        let folder = TemporaryFolder()
        try folder.write("AKIA1:secret\n", to: "waypost.s3")
        let environment = ["CREDENTIALS_DIRECTORY": folder.path]
        let bucket = "\(Self.evil)/data"
        let read = { (onlyBound: Bool) throws(Failure) in
            try StoreKeys.read(
                file: nil,
                environment: environment,
                for: bucket,
                onlyBound: onlyBound
            )
        }
        #expect(try read(false) == "AKIA1:secret")
        #expect(throws: Failure.self) { try read(true) }
    }

    /// `waypost enroll` stores a token with its server, like an import from a card.
    @Test(arguments: [true, false])
    func tokenOfAnEnrolment_isForItsServerAlone(byCode: Bool) throws {
        let answer = "def answer(path, before): return 200, b'{\"token\":\"given\"}'\n"
        let stub = try StubServer(StubServer.posts(answer), "")
        let device = try Device()
        let server = "http://127.0.0.1:\(stub.port)"
        let (path, state) = (device.paths.configuration, device.paths.state)
        try device.folder.write(
            "state_directory = \"\(state)\"\nruntime_directory = \"\(device.paths.runtime)\"\n",
            to: "etc/waypost.toml"
        )
        let given = try device.folder.write("given\n", to: "given")
        let onboarding = Onboarding(configuration: path, environment: [:], version: "1")
        _ = try onboarding.enrol(
            at: ServerChoice(server + "/api/ingest"),
            with: byCode ? .code("KNOWNCODE") : .tokenFile(given)
        )
        let token = device.folder.path + "/etc/token"
        #expect(device.text("etc/token") == "given\n# for \(server)\n")
        let read = { (endpoint: String) throws(Failure) in
            try Token.read(file: token, environment: [:], for: endpoint)
        }
        #expect(try read(server + "/elsewhere") == "given")
        #expect(throws: Failure.self) { try read("https://new.example.org/api/ingest") }
        // Nor is it sent there by hand; it is sent to its own server.
        let other = "http://localhost:\(stub.port)/api/ingest"
        #expect(throws: Failure.self) {
            try onboarding.enrol(at: ServerChoice(other), with: .tokenFile(token))
        }
        _ = try onboarding.enrol(at: ServerChoice(server + "/api/ingest"), with: .tokenFile(token))
        #expect(device.text("etc/token") == "given\n# for \(server)\n")
        stub.stop()
    }

    /// The configuration is changed by hand: the file itself names its server.
    @Test func gateway_readsASecret_forItsOwnServerAlone() throws {
        let device = try device("waypost.token", "old-token")
        let environment = ["CREDENTIALS_DIRECTORY": device.paths.credentials]
        let read = { (endpoint: String) throws(Failure) in
            try Token.read(file: nil, environment: environment, for: endpoint)
        }
        #expect(try read("https://old.example.org/elsewhere") == "old-token")
        do throws(Failure) {
            _ = try read("https://new.example.org/api/ingest")
            Issue.record("the token of another server")
        } catch {
            #expect(error.message.contains("is for https://old.example.org"))
        }
        #expect(throws: Failure.self) { try read("http://old.example.org/api/ingest") }
    }
}
