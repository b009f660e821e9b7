// A code is exchanged for a token, and the service gets it.
import Foundation
import Host
import Support
import Testing

@testable import Daemon
@testable import Field

@Suite struct CardEnrolmentTests {
    /// A server that gives a token for any code, and answers busy to the first other request.
    private static let server = StubServer.posts(
        """
        def answer(path, before):
            if path.endswith("/enroll"): return 200, b'{"token":"given"}'
            return (200 if any(not one.endswith("/enroll") for one in before) else 503), b"{}"
        """
    )

    /// A timeout of its unit, or another stick, kills the program while it waits for an answer.
    ///
    /// The token is stored by then, and a service gets its credentials only at its start.
    @Test func killedEnrolment_hasServiceRestartedByTheNextOne() throws {
        let stub = try StubServer(Self.server, "")
        let device = try device(of: stub)
        #expect(device.paths.isServiceBehind)
        device.paths.recordServiceRestarted()
        let enrolment = CardEnrolment(device.paths, version: "1")
        let first = try enrolment.run(on: nil)
        #expect(first.isLater)
        #expect(device.state[1]?.hasPrefix("given\n") == true)
        // It was killed before it could restart anything.
        let second = try enrolment.run(on: nil)
        #expect(second.problem == nil)
        #expect(device.paths.isServiceBehind)
        device.paths.recordServiceRestarted()
        #expect(try enrolment.run(on: nil) == CardEnrolment.Outcome())
        #expect(!device.paths.isServiceBehind)
        stub.stop()
    }

    /// A server behind a captive portal, which answers the first request after a code and after a
    /// token.
    private static let harbour = StubServer.posts(
        """
        def answer(path, before):
            status, _, words = sys.argv[1].partition(":")
            return (200, b'{"token":"given"}') if path in before else (int(status), words.encode())
        """
    )

    private func device(of stub: StubServer) throws -> Device {
        let device = try Device()
        let endpoint = "http://127.0.0.1:\(stub.port)/api/ingest"
        try device.put("[upload]\nendpoint = \"\(endpoint)\"\n", "waypost.toml")
        try device.put("KNOWNCODE", "waypost.code")
        try device.start()
        return device
    }

    @Test(arguments: ["400:<html>log in", "401:<html>log in", "403:<html>log in", "302:"])
    func portal_isRetried_andReportedAsPortal(answer: String) throws {
        let stub = try StubServer(Self.harbour, answer)
        let device = try device(of: stub)
        let enrolment = CardEnrolment(device.paths, version: "1")
        for _ in 1...2 {
            let outcome = try enrolment.run(on: device.card)
            #expect(outcome.isLater)
            #expect(device.errors?.contains("it is tried again every minute") == true)
        }
        #expect(try enrolment.run(on: device.card).problem == nil)
        #expect(device.state[1]?.hasPrefix("given\n") == true)
        stub.stop()
    }

    @Test func serverThatRefusesACode_isNotAskedAgain() throws {
        let stub = try StubServer(Self.harbour, #"403:{"error":"this code was used"}"#)
        let device = try device(of: stub)
        let outcome = try CardEnrolment(device.paths, version: "1").run(on: device.card)
        #expect(outcome.problem != nil && !outcome.isLater)
        #expect(device.errors?.contains("this code was used") == true)
        stub.stop()
    }

    /// An import from a stick waits in the meantime, or its problems and its end would be
    /// overwritten.
    @Test func errorReport_locksOutOtherImports() throws {
        let device = try Device()
        try device.put("[upload]\nendpoint = \"http://127.0.0.1:1/api/ingest\"\n", "waypost.toml")
        try device.put("token-1", "waypost.token")
        try device.start()
        let refused = Locked([Int32]())
        var files = StepFiles()
        files.onStep = {
            [journal = device.paths.journal, errors = device.card + "/waypost-errors.txt"] _, path
            in
            guard path == errors else { return }
            let folder = open(journal, O_RDONLY | O_DIRECTORY)
            defer { close(folder) }
            refused.update { $0.append(flock(folder, LOCK_EX | LOCK_NB) == 0 ? 0 : errno) }
        }
        let enrolment = CardEnrolment(
            device.paths,
            version: "1",
            clock: SystemClock(),
            files: files
        )
        #expect(try enrolment.run(on: device.card).isLater)
        #expect(device.errors?.contains("E001") == true)
        #expect(!refused.value.isEmpty && refused.value.allSatisfy { $0 == EWOULDBLOCK })
    }
}
