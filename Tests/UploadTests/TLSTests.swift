// Uploads to a real web server over TLS: which certificates are trusted, and the error messages.
import Foundation
import Host
import HTTP
import Queue
import Records
import StatusBoard
import Testing
import Upload

@Suite(.enabled(if: TLSFixture.isPossible))
struct TLSTests {
    /// Syncs five records; returns the failure, nil if all were accepted.
    private func sync(
        _ server: TLSFixture,
        _ kind: TLSFixture.Kind,
        host: String = "127.0.0.1",
        authority: String? = "ca.pem",
        pin: String? = nil
    ) throws -> Failure? {
        let fixture = try UploadFixture(
            endpoint: server.endpoint(kind, host: host),
            change: { settings in
                settings.transport.certificateFile = authority.map { "\(server.folder)/\($0)" }
                settings.transport.pinnedPublicKey = pin
            }
        ) { _ in .ok }
        defer { fixture.finish() }
        fixture.add(5)
        let isDone = try fixture.sync()
        #expect(fixture.figures?.uploaded == (isDone ? 5 : 0))
        #expect(fixture.figures?.pending == (isDone ? 0 : 5))
        return fixture.board.state.value?.streams[.location]?.lastError?.failure
    }

    @Test func trustedServer_isUsed() throws {
        let server = try TLSFixture()
        #expect(try sync(server, .good) == nil)
        #expect(try sync(server, .good, host: "localhost") == nil)
        #expect(try sync(server, .selfSigned, authority: "selfSigned.pem") == nil)
    }

    @Test func untrustedServer_isANetworkError_andGetsNothing() throws {
        let server = try TLSFixture()
        let cases: [(TLSFixture.Kind, String?, String)] = [
            (.good, nil, "curl 60"), (.expired, "ca.pem", "certificate has expired"),
            (.future, "ca.pem", "certificate is not yet valid"),
            (.selfSigned, "ca.pem", "self-signed certificate"),
            (.otherHost, "ca.pem", "certificate subject name"), (.oldTLS, "ca.pem", "curl 35"),
            (.good, "nothing.pem", "upload.ca_file"), (.good, "ca.key", "curl"),
        ]
        for (kind, authority, words) in cases {
            let failure = try sync(server, kind, authority: authority)
            #expect(failure?.code == .network, "\(kind)")
            let message = failure?.message ?? ""
            #expect(message.contains(words), "\(kind): \(message)")
            #expect(message.hasPrefix(server.endpoint(kind)))
        }
        let failure = try sync(server, .expired)
        #expect(failure?.message.contains("check this device's clock") == true)
    }

    @Test func pinnedKey_admitsOneServerAlone_andReplacesNoCheck() throws {
        let server = try TLSFixture()
        let (good, other) = (try server.pin(.good), try server.pin(.selfSigned))
        #expect(try sync(server, .good, pin: good) == nil)
        #expect(try sync(server, .good, pin: other + ";" + good) == nil)
        let wrong = try sync(server, .good, pin: other)
        #expect(wrong?.code == .network)
        #expect(wrong?.message.contains("upload.pinned_public_key") == true)
        // The right key in a certificate that nobody signed is still refused.
        #expect(try sync(server, .selfSigned, pin: other)?.code == .network)
        #expect(try sync(server, .expired, pin: server.pin(.expired))?.code == .network)
    }

    @Test func largeBodies_areHalvedByARealServersLimit() throws {
        let server = try TLSFixture()
        let fixture = try UploadFixture(
            maxBatchBytes: 1 << 20,
            endpoint: server.endpoint(.good),
            change: {
                $0.transport.certificateFile = server.folder + "/ca.pem"
                $0.compression = .none
            }
        ) { _ in .ok }
        defer { fixture.finish() }
        fixture.add(20_000)
        #expect(try fixture.sync())
        #expect(fixture.figures?.uploaded == 20_000)
        let small = try UploadFixture(
            endpoint: server.endpoint(.small),
            change: {
                $0.transport.certificateFile = server.folder + "/ca.pem"
                $0.compression = .none
            }
        ) { _ in .ok }
        defer { small.finish() }
        small.add(100)
        #expect(try small.sync())
        #expect(small.figures?.uploaded == 100)
        #expect(small.figures?.quarantined == 0)
    }
}
