// Object storage as destination: keys, verdicts, signatures that a store checks, results of a
// query.
import CLinux
import Foundation
import Host
import Queue
import Records
import StatusBoard
import Support
import Testing

import HTTP
@testable import Upload

// Serialised: each store is a Python process of some 100 MB.
@Suite(.serialized, .enabled(if: Tree.hasTool(Tree.python), "deploy/test --prepare makes it"))
struct BucketTests {
    private typealias Fixture = BucketFixture

    // MARK: Against a real store

    @Test(arguments: [Compression.zstd, .gzip, .none])
    func records_areFoundByOneQuery_eachOnce(compression: Compression) throws {
        let store = try ObjectStore()
        let fixture = try Fixture(
            url: store.access.url,
            keys: store.access.keys,
            compression: compression,
            maxBatchBytes: 4000
        )
        defer { fixture.finish() }
        try fixture.add(50)
        #expect(try fixture.sync())
        #expect(try fixture.figures(.location).uploaded == 50)
        let contents = try store.contents()
        // Batches of some 16 fixes, none over midnight.
        #expect(Set(contents.rows.map(\.date)) == ["2026-11-21", "2026-11-22"])
        #expect(contents.rows.allSatisfy { $0.stream == "places" && $0.device == "device-1" })
        #expect(contents.rows.reduce(0) { $0 + $1.records } == 50)
        #expect(contents.rows.reduce(0) { $0 + $1.ids } == 50)
        let suffix = ".ndjson" + compression.fileSuffix
        #expect(contents.objects.count > 2)
        #expect(contents.objects.keys.allSatisfy { $0.hasSuffix(suffix) })
        #expect(Set(contents.objects.values) == [compression.objectType])
    }

    @Test func faults_storeEachRecordOnce_andLoseNone() throws {
        let faults = ["cut", "503", "stored", "403", "ok", "cut", "stored"]
        let store = try ObjectStore(faults: faults)
        let fixture = try Fixture(
            url: store.access.url + "/",
            keys: store.access.keys,
            maxBatchBytes: 4000
        )
        defer { fixture.finish() }
        try fixture.add(50)
        var codes: [String] = []
        var syncs = 0
        while try !fixture.sync() {
            codes.append(fixture.error(.location)?.code?.rawValue ?? "none")
            syncs += 1
            try #require(syncs < 20)
        }
        #expect(codes == ["E001", "E003", "E001", "E002", "E001", "E001"])
        let contents = try store.contents()
        #expect(contents.rows.reduce(0) { $0 + $1.records } == 50)
        #expect(contents.rows.reduce(0) { $0 + $1.ids } == 50)
        #expect(try fixture.figures(.location).uploaded == 50)
        #expect(try fixture.figures(.location).quarantined == 0)
    }

    @Test func crashBeforeCommit_storesTheSameObjectAgain() throws {
        let store = try ObjectStore(faults: ["hang"])
        let fixture = try Fixture(url: store.access.url, keys: store.access.keys)
        defer { fixture.finish() }
        try fixture.add(20, from: "2026-11-21T12:00:00.000Z")
        fixture.tick()
        let first = store.nextPut()
        // The batch is stored, but its answer never arrives.
        fixture.end()
        #expect(try fixture.figures(.location).pending == 20)
        try fixture.start()
        #expect(try fixture.sync())
        let again = store.nextPut()
        #expect(first.dropFirst("hang ".count) == again.dropFirst("ok ".count))
        let contents = try store.contents()
        #expect(contents.objects.count == 1)
        #expect(contents.rows.map(\.records) == [20])
        #expect(contents.rows.map(\.ids) == [20])
    }

    @Test(arguments: [(AudioCodec.opus, "OggS"), (.wav, "RIFF")])
    func sound_liesApartFromTheRecordsThatNameIt(codec: AudioCodec, magic: String) throws {
        // The second chunk's answer is lost: only that one is resent, then the third and the
        // records.
        let store = try ObjectStore(faults: ["ok", "stored"])
        let fixture = try Fixture(
            url: store.access.url,
            keys: store.access.keys,
            maxBatchBytes: 64 << 20
        )
        defer { fixture.finish() }
        // WAV: exceeds what is kept in memory, so it is produced while it is sent.
        fixture.addAudio(codec, chunks: 3, segmentBytes: 300_000)
        #expect(try !fixture.sync())
        #expect(try fixture.sync())
        let puts = (0..<5).map { _ in store.nextPut() }
        #expect(puts.map { $0.split(separator: " ")[0] } == ["ok", "stored", "ok", "ok", "ok"])
        #expect(puts[1].dropFirst("stored ".count) == puts[2].dropFirst("ok ".count))
        #expect(puts.dropLast().allSatisfy { $0.contains(" audio/") })
        #expect(puts[4].contains(" stream=") && puts[4].hasSuffix(".ndjson.zst"))
        let contents = try store.contents()
        #expect(contents.sound.count == 3)
        #expect(contents.sound.values.allSatisfy { $0 == magic })
        #expect(contents.objects.values.filter { $0 == codec.mediaType }.count == 3)
        #expect(contents.rows.map(\.records) == [3])
    }

    @Test func largeBatch_isStreamedAndItsSignatureHolds() throws {
        let store = try ObjectStore()
        let fixture = try Fixture(
            url: store.access.url,
            keys: store.access.keys,
            compression: .none,
            maxBatchBytes: 64 << 20
        )
        defer { fixture.finish() }
        try fixture.add(20_000, from: "2026-11-21T00:00:00.000Z")
        #expect(try fixture.sync())
        let contents = try store.contents()
        // The newest are sent first, as a separate batch.
        #expect((1...2).contains(contents.objects.count))
        #expect(contents.rows.map(\.ids) == [20_000])
        #expect(contents.rows.map(\.records) == [20_000])
    }

    @Test func enrolment_isOneSignedRequest_andLeavesNoRecord() throws {
        let store = try ObjectStore()
        let fixture = try Fixture(url: store.access.url, keys: store.access.keys)
        defer { fixture.finish() }
        #expect(try fixture.settings.destination.verify(until: StopSignal()) == .accepted())
        #expect(store.nextPut() == "ok _waypost/device=device-1.json")
        let contents = try store.contents()
        #expect(contents.objects == ["_waypost/device=device-1.json": "application/json"])
        #expect(contents.rows.isEmpty)
    }

    @Test(arguments: [
        ("secret", "E002", "the store refused the keys (HTTP 403 SignatureDoesNotMatch"),
        ("id", "E002", "the store refused the keys (HTTP 403 InvalidAccessKeyId"),
        ("bucket", "E003", "no bucket answers at the address (HTTP 404 NoSuchBucket"),
    ])
    func wrongSetting_isNamedByTheStore(setting: String, code: String, words: String) throws {
        let store = try ObjectStore()
        let access = store.access
        let keys = [
            "secret": "\(access.id):wrong", "id": "AKIA0000000000000000:\(access.secret)",
        ]
        let fixture = try Fixture(
            url: setting == "bucket" ? "\(access.endpoint)/other-bucket" : access.url,
            keys: keys[setting] ?? access.keys
        )
        defer { fixture.finish() }
        try fixture.add(5)
        #expect(try !fixture.sync())
        let failure = try #require(fixture.error(.location))
        #expect(failure.code?.rawValue == code)
        #expect(failure.message.hasPrefix(words), "\(failure.message)")
        #expect(!failure.message.contains(access.secret) && !failure.message.contains("wrong"))
        #expect(try fixture.figures(.location).pending == 5)
    }

    @Test func midnight_endsABatch_soThatDatesAreRight() throws {
        let store = try ObjectStore()
        let fixture = try Fixture(url: store.access.url, keys: store.access.keys)
        defer { fixture.finish() }
        // 50 s from ten seconds before midnight, then back over it, and a day later.
        try fixture.add(50)
        try fixture.add(5, from: "2026-11-21T23:59:58.000Z")
        try fixture.add(3, from: "2026-11-22T12:00:00.000Z")
        try fixture.addChunks(3, from: "2026-11-21T23:59:57.000Z")
        #expect(try fixture.sync())
        let contents = try store.contents()
        let days = contents.rows.map { "\($0.stream) \($0.date) \($0.records)" }
        #expect(
            Set(days) == [
                "places 2026-11-21 12", "places 2026-11-22 46", "audio 2026-11-21 2",
                "audio 2026-11-22 1",
            ]
        )
        // One batch each: ten seconds, forty, two, and the rest; two chunks, and one.
        #expect(contents.objects.values.filter { $0 == "application/zstd" }.count == 6)
    }

    @Test func midnight_endsTheNewestOfABacklog_too() throws {
        let server = try FaultyServer { _ in .stored }
        defer { server.close() }
        let fixture = try Fixture(url: "http://127.0.0.1:\(server.port)/bucket", compression: .none)
        defer { fixture.finish() }
        // The newest thousand would begin before midnight.
        try fixture.add(3000, from: "2026-11-21T23:20:00.000Z")
        #expect(try fixture.sync())
        for request in server.requests {
            let day = request.path.contains("2026-11-21") ? "2026-11-21" : "2026-11-22"
            let lines = String(decoding: request.body, as: UTF8.self).split(separator: "\n")
            #expect(lines.allSatisfy { $0.contains("\"timestamp\":\"\(day)") })
        }
        #expect(try fixture.figures(.location).uploaded == 3000)
    }

    // MARK: Against scripted answers

    @Test func request_isTheSamePut_atEachRetry() throws {
        let isBusy = Locked(true)
        let server = try FaultyServer { _ in
            isBusy.value ? .answer(status: 503, body: "") : .stored
        }
        defer { server.close() }
        let fixture = try Fixture(url: "http://127.0.0.1:\(server.port)/bucket/folder")
        defer { fixture.finish() }
        try fixture.add(20, from: "2026-11-21T12:00:00.000Z")
        #expect(try !fixture.sync())
        try fixture.add(5, from: "2026-11-21T13:00:00.000Z")
        isBusy.update { $0 = false }
        #expect(try fixture.sync())
        let requests = server.requests
        #expect(requests.count == 3)
        #expect(requests[0].body == requests[1].body)
        #expect(requests[0].path == requests[1].path)
        #expect(requests.allSatisfy { $0.method == "PUT" && $0.headers["expect"] == nil })
        let folder = "/bucket/folder/stream%3Dplaces/date%3D2026-11-21/device%3Ddevice-1/"
        #expect(requests.allSatisfy { $0.path.hasPrefix(folder) })
        #expect(requests.allSatisfy { $0.headers["content-encoding"] == nil })
        for request in requests {
            var sum = try SHA256()
            try sum.append(request.body)
            let digest = try sum.finish()
            #expect(request.headers["x-amz-content-sha256"] == digest)
            let signature = request.headers["authorization"] ?? ""
            #expect(signature.contains("/us-east-1/s3/aws4_request"))
            #expect(!signature.contains("secret"))
        }
    }

    @Test(arguments: [
        (403, "RequestTimeTooSkewed", "retry"), (400, "RequestTimeTooSkewed", "retry"),
        (403, "AccessDenied", "tokenRefused"), (401, "", "tokenRefused"),
        (400, "InvalidToken", "tokenRefused"), (404, "NoSuchBucket", "endpointWrong"),
        (404, "", "endpointWrong"), (301, "PermanentRedirect", "endpointWrong"),
        (307, "", "endpointWrong"), (400, "AuthorizationHeaderMalformed", "endpointWrong"),
        (413, "", "tooLarge"), (400, "EntityTooLarge", "tooLarge"), (503, "SlowDown", "retry"),
        (429, "", "retry"), (500, "InternalError", "retry"), (507, "", "retry"),
        (409, "OperationAborted", "retry"), (400, "BadDigest", "retry"), (418, "", "retry"),
    ])
    func verdict_followsTheStoresCode(status: Int, code: String, expected: String) {
        let body = code.isEmpty ? "" : "<Error><Code>\(code)</Code><Message>m</Message></Error>"
        let verdict = Verdict(bucket: Answer(status: status, body: Array(body.utf8)))
        #expect("\(verdict)".hasPrefix(expected), "\(verdict)")
    }

    @Test func success_countsOnlyWithTheNameOfWhatWasStored() {
        var answer = Answer(status: 200, contentType: "text/html", body: Array("<html>".utf8))
        guard case .retry(let failure, _) = Verdict(bucket: answer) else {
            Issue.record("a captive portal was believed")
            return
        }
        #expect(failure.message.contains("captive portal"))
        answer.etag = "\"5d41402abc4b2a76b9719d911017c592\""
        #expect(Verdict(bucket: answer) == .accepted)
    }

    @Test func wrongRegion_isReportedWithTheRightOne() {
        let body = "<Error><Code>AuthorizationHeaderMalformed</Code><Message>wrong</Message>"
        let named = Answer(status: 400, body: Array((body + "<Region>eu-west-1</Region>").utf8))
        var redirected = Answer(status: 301)
        redirected.region = "eu-west-1"
        for answer in [named, redirected] {
            guard case .endpointWrong(let failure) = Verdict(bucket: answer) else {
                Issue.record("\(Verdict(bucket: answer))")
                continue
            }
            #expect(failure.message.contains("is in region eu-west-1: set upload.region"))
        }
    }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            String(repeating: "a", count: 1_000_000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        ),
    ])
    func sha256_isThatOfTheStandard_howeverItIsCut(text: String, expected: String) throws {
        for step in [1, 55, 64, 4096, 1_000_000] where text.utf8.count / step < 100_000 {
            var sum = try SHA256()
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                try sum.append(Array(rest.prefix(step)))
                rest = rest.dropFirst(step)
            }
            let digest = try sum.finish()
            #expect(digest == expected, "pieces of \(step)")
        }
    }
}
