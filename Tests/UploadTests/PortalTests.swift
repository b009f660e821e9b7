// Captive portals: whatever their page says, no record is lost or refused because of it.
import Foundation
import Host
import HTTP
import Queue
import Records
import StatusBoard
import Support
import Testing

import Upload

@Suite struct PortalTests {
    private static let page = "\r\n<!DOCTYPE html><title>Harbour Wi-Fi</title>"

    private static func portal(_ status: Int) -> Behaviour {
        .answer(status: status, body: page, headers: ["Location: http://10.0.0.1/login"])
    }

    /// A server that refuses one fix and sends HTML pages with refusals, as many frameworks do.
    private static func server(_ status: Int, verify: Int) -> @Sendable (Request) -> Behaviour {
        { request in
            if request.path.hasSuffix("/verify") {
                return .answer(status: verify, body: verify == 200 ? "{}" : "<html>no</html>")
            }
            let body = String(decoding: (try? gunzip(request.body)) ?? Data(), as: UTF8.self)
            return body.contains("\"longitude\":0.0000030,")
                ? .answer(status: status, body: "<html>bad</html>") : .ok
        }
    }

    private func fixture(_ behaviour: @escaping @Sendable (Request) -> Behaviour) throws
        -> UploadFixture
    {
        try UploadFixture(change: { $0.upload.maxAttempts = 1 }, behaviour)
    }

    @Test(arguments: [200, 302, 400, 401, 403, 404, 405, 413, 422, 451, 511])
    func portalForDays_leavesTheRecordsAsTheyAre(status: Int) throws {
        let isThere = Locked(true)
        let fixture = try fixture { _ in isThere.value ? Self.portal(status) : .ok }
        defer { fixture.finish() }
        fixture.add(20)
        fixture.addSightings(1)
        fixture.queue.accept(Event(.gap, source: "audio", detail: [], stamp: SystemClock().stamp()))
        for _ in 1...12 { #expect(try fixture.result().quarantined == 0) }
        let words = fixture.board.state.value?.streams.values.compactMap(
            \.lastError?.failure.message
        )
        #expect(words?.allSatisfy { $0.contains("Harbour Wi-Fi") || status == 200 } == true)
        isThere.update { $0 = false }
        let before = fixture.server.requests.count
        #expect(try fixture.result() == SyncResult(left: 0))
        // Nothing was halved in between.
        #expect(fixture.server.requests.count - before == 3)
        #expect(fixture.figures?.uploaded == 20)
        #expect(fixture.board.state.value?.phase == .idle)
    }

    @Test(arguments: [400, 401, 403, 413, 422])
    func portalInTheMiddleOfASync_isNoVerdict(status: Int) throws {
        let isThere = Locked(true)
        let fixture = try UploadFixture(
            maxBatchBytes: 4 << 10,
            change: { $0.upload.maxAttempts = 1 }
        ) { request in
            let isUpload = request.path.hasSuffix("/ingest")
            guard isThere.value, !isUpload || (try? SentBatch(request).last) == 100 else {
                return .ok
            }
            return Self.portal(status)
        }
        defer { fixture.finish() }
        fixture.add(100)
        let result = try fixture.result()
        #expect(result.quarantined == 0)
        #expect((1..<50).contains(result.left ?? 0))
        #expect(fixture.board.state.value?.phase == .waiting)
        let failure = fixture.board.state.value?.streams[.location]?.lastError?.failure
        #expect(failure?.code == .server)
        #expect(failure?.message.contains("captive portal") == true)
        isThere.update { $0 = false }
        #expect(try fixture.result() == SyncResult(left: 0))
    }

    /// waypost-protocol(7) prescribes no format for a refusal.
    @Test(arguments: [400, 413, 422], [200, 401, 404])
    func pageOfTheServerItself_isARefusal(status: Int, verify: Int) throws {
        let fixture = try fixture(Self.server(status, verify: verify))
        defer { fixture.finish() }
        fixture.add(8)
        #expect(try fixture.result() == SyncResult(left: 0, quarantined: 1))
        #expect(fixture.figures?.uploaded == 7)
    }

    /// If DNS leads to the portal, its connection must not be reused once the network is open.
    @Test(arguments: [200, 403, 422])
    func connectionToAPortal_isUsedOnce(status: Int) throws {
        let fixture = try fixture { _ in Self.portal(status) }
        defer { fixture.finish() }
        fixture.add(3)
        for number in 1...3 {
            #expect(try !fixture.sync())
            #expect(fixture.server.connectionCount == number)
        }
    }

    @Test func pageRefusingToken_stopsUploads_andSuggestsAPortal() throws {
        let fixture = try fixture { _ in Self.portal(403) }
        defer { fixture.finish() }
        fixture.add(3)
        #expect(try !fixture.sync())
        #expect(fixture.board.state.value?.phase == .tokenRefused)
        let failure = fixture.board.state.value?.streams[.location]?.lastError?.failure
        #expect(failure?.code == .tokenRefused)
        #expect(failure?.message.contains("captive portal") == true)
    }

    @Test(arguments: [401, 403])
    func pageInPlaceOfAStore_refusesNoKeys(status: Int) {
        let answer = Answer(status: status, body: Array(Self.page.utf8))
        guard case .retry(let failure, nil) = Verdict(bucket: answer) else {
            Issue.record("a captive portal was believed")
            return
        }
        #expect(failure.message.contains("Harbour Wi-Fi"))
    }

    // MARK: Enrolment

    private func settings(_ server: FaultyServer) -> TransportSettings {
        TransportSettings(endpoint: server.endpoint, userAgent: "waypost/test")
    }

    private static let strangers: [(Int, String)] = [
        (400, page), (401, page), (403, page), (403, ""), (403, "Forbidden"), (401, "\"no\""),
        (422, "{\"error\":"),
    ]

    private func failure(_ body: () throws -> Void) throws -> Failure {
        var thrown: Failure?
        do { try body() } catch { thrown = error as? Failure }
        return try #require(thrown)
    }

    @Test(arguments: strangers)
    func refusalThatIsNotAServers_isNone(status: Int, body: String) throws {
        let server = try FaultyServer { _ in .answer(status: status, body: body) }
        defer { server.close() }
        let settings = settings(server)
        let verified = try failure {
            _ = try Enrolment.verify(settings, token: "t", until: StopSignal())
        }
        // waypost-protocol(7) prescribes no format for a server's 401 and 403, so only an HTML page
        // is doubtful.
        let isBelieved = [401, 403].contains(status) && body != Self.page
        #expect(verified.code == (isBelieved ? .tokenRefused : .server))
        let exchanged = try failure { try exchange(settings) }
        #expect(exchanged.code == .server)
        #expect(exchanged.message.contains("captive portal"))
    }

    @Test(arguments: [200, 302, 307, 404, 405])
    func portalAnswerToCode_isReportedAsPortal(status: Int) throws {
        let server = try FaultyServer { _ in Self.portal(status) }
        defer { server.close() }
        let exchanged = try failure { try exchange(settings(server)) }
        #expect(exchanged.code == .server)
        #expect(exchanged.message.contains("captive portal"))
    }

    @Test(arguments: [400, 401, 403, 410])
    func refusalOfAServer_isOne(status: Int) throws {
        let server = try FaultyServer { _ in .answer(status: status, body: #"{"detail":"used"}"#) }
        defer { server.close() }
        #expect(try failure { try exchange(settings(server)) }.code == .tokenRefused)
        guard status == 401 || status == 403 else { return }
        let verified = try failure {
            _ = try Enrolment.verify(settings(server), token: "t", until: StopSignal())
        }
        #expect(verified.code == .tokenRefused)
    }

    private func exchange(_ settings: TransportSettings) throws {
        _ = try Enrolment.exchange(
            code: "c",
            deviceID: "d",
            wanted: "w",
            settings,
            until: StopSignal()
        )
    }
}
