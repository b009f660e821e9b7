// A secret goes to no server that it was not given for.
import Board
import Foundation
import Support
import Testing

@testable import Gateway

@Suite struct SecretServerTests {
    private static func configuration(_ server: String) -> String {
        "[upload]\nendpoint = \"\(server)/api/ingest\"\n"
    }

    private static let old = "https://old.example.org"

    /// A device that has a secret for the old server, from a card that holds it no more.
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
            // It may be that server's, too: then a person writes it once more.
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

    /// What an older Waypost stored says not whom it is for: it has been sent to the server in force.
    @Test func secretWithoutAName_isForTheServerInForce() throws {
        let device = try device("waypost.token", "old-token")
        try device.folder.write("old-token\n", to: "credstore/waypost.token")
        try device.put(Self.configuration("https://new.example.org"), "waypost.toml")
        #expect(try device.start().problems.count == 1)
        try device.put(Self.configuration(Self.old) + "interval = \"1m\"\n", "waypost.toml")
        #expect(try device.start().imported == ["waypost.toml"])
    }

    /// What `waypost enroll` stores says whom it is for, as what comes from a card does.
    @Test(arguments: [true, false])
    func tokenOfAnEnrolment_isForItsServerAlone(byCode: Bool) throws {
        let answer = "def answer(path, before): return 200, b'{\"token\":\"given\"}'\n"
        let stub = try StubServer(StubServer.posts(answer), "")
        let device = try Device()
        let server = "http://127.0.0.1:\(stub.port)"
        let (path, state) = (device.places.configuration, device.places.state)
        try device.folder.write(
            "state_directory = \"\(state)\"\nruntime_directory = \"\(device.places.runtime)\"\n",
            to: "etc/waypost.toml"
        )
        let given = try device.folder.write("given\n", to: "given")
        let onboarding = Onboarding(configuration: path, environment: [:], version: "1")
        _ = try onboarding.enrol(
            at: server + "/api/ingest",
            with: byCode ? .code("KNOWNCODE") : .tokenFile(given)
        )
        let token = device.folder.path + "/etc/token"
        #expect(device.text("etc/token") == "given\n# for \(server)\n")
        let read = { (endpoint: String) throws(Failure) in
            try Token.read(file: token, environment: [:], for: endpoint)
        }
        #expect(try read(server + "/elsewhere") == "given")
        #expect(throws: Failure.self) { try read("https://new.example.org/api/ingest") }
        // Nor does it go there by hand; to its own server it does.
        let other = "http://localhost:\(stub.port)/api/ingest"
        #expect(throws: Failure.self) { try onboarding.enrol(at: other, with: .tokenFile(token)) }
        _ = try onboarding.enrol(at: server + "/api/ingest", with: .tokenFile(token))
        #expect(device.text("etc/token") == "given\n# for \(server)\n")
        stub.stop()
    }

    /// The configuration is changed by hand: the file itself says whom it is for.
    @Test func gateway_readsASecret_forItsOwnServerAlone() throws {
        let device = try device("waypost.token", "old-token")
        let environment = ["CREDENTIALS_DIRECTORY": device.places.credentials]
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
