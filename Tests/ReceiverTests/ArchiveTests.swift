// The archive alone: its files, and the state after a batch that cannot be stored.
import Foundation
import Host
import ReceiverSupport
import SQLite
import Support
import Testing

@testable import ServerArchive
@testable import ServerBase

@Suite struct ArchiveTests {
    private let folder = TemporaryFolder()

    private func archive(
        isClockSynced: Bool = true,
        workLimit: @escaping @Sendable () -> WorkLimit = { .storing }
    ) throws -> Archive {
        try Archive(
            directory: folder.path,
            bytesPerDay: 1 << 40,
            isClockSynced: { isClockSynced },
            workLimit: workLimit,
            warn: { _ in },
            reportStored: { _ in }
        )
    }

    private func withView<Value>(_ body: [UInt8], _ use: (ByteView) throws -> Value) throws -> Value
    {
        try body.withUnsafeBytes { try use(ByteView($0, isMapped: false)) }
    }

    private func store(_ body: [UInt8], in archive: Archive) throws -> Receipt {
        try withView(body) {
            let batch = try IncomingBatch(checking: $0)
            return try archive.store(batch, key: UUID().uuidString, body: $0)
        }
    }

    /// The records in the file of a day.
    private func records(_ date: String) throws -> [[String: Any]] {
        let text = try folder.read("stream=places/date=\(date)/device=d1/records.ndjson")
        return try text.split(separator: "\n").map {
            let object = try JSONSerialization.jsonObject(with: Data($0.utf8))
            return try #require(object as? [String: Any])
        }
    }

    // MARK: A database that somebody changed

    private func storeAfter(_ sql: String) throws -> Receipt {
        #expect(try store(RawRequest.batch(["a"]), in: archive()).accepted == 1)
        try Connection(path: ArchiveFiles.index(in: folder.path), access: .readWrite).execute(sql)
        let archive = try archive()
        return try store(RawRequest.batch(["b"]), in: archive)
    }

    @Test func countsAtTheEndOf64Bits_areStillCounted() throws {
        #expect(try storeAfter("UPDATE streams SET records=\(Int64.max)").accepted == 1)
    }

    @Test func timesAtTheEndOf64Bits_areStillCompared() throws {
        #expect(try storeAfter("UPDATE devices SET last_seen=\(Int64.min)").accepted == 1)
    }

    @Test func filesAtTheEndOf64Bits_areTooMany() throws {
        #expect(try store(RawRequest.batch(["a"]), in: archive()).accepted == 1)
        let index = try Connection(path: ArchiveFiles.index(in: folder.path), access: .readWrite)
        try index.execute("UPDATE stream_days SET files=\(Int64.max)")
        try FileManager.default.removeItem(atPath: "\(folder.path)/stream=places")
        let refusal = #expect(throws: HTTPError.self) {
            try store(RawRequest.batch(["c"]), in: archive())
        }
        #expect(refusal?.status == 429)
    }

    @Test func checkpointBeforeAFile_isAnError() throws {
        let lines = try LineFile.open(try folder.write("{}\n", to: "lines"))
        guard let file = lines else { throw Failure("there is no file") }
        #expect(throws: Failure.self) { try file.forEachLine(from: .min, to: 3) { _ in } }
    }

    // MARK: A batch that takes too long to be stored

    /// Its first records are already written when the limit is reached; so many are parsed again.
    @Test func slowBatch_leavesNothing_andItsGroupIsStored() throws {
        let archive = try archive(workLimit: { WorkLimit(seconds: 0) })
        let list = Array(repeating: "1", count: 200).joined(separator: ",")
        let slow = RawRequest.batch((0..<600).map { "b\($0)" }, padding: #","list":[\#(list)]"#)
        let group = try withView(RawRequest.batch(["a"])) { first in
            try withView(slow) { second in
                try withView(RawRequest.batch(["d"])) { third in
                    let group = try [first, second, third].map {
                        WaitingBatch(
                            batch: try IncomingBatch(checking: $0),
                            key: UUID().uuidString,
                            body: $0
                        )
                    }
                    archive.store(group)
                    return group
                }
            }
        }
        #expect(try group[0].result?.get() == Receipt(accepted: 1, duplicates: 0))
        #expect(try group[2].result?.get() == Receipt(accepted: 1, duplicates: 0))
        do {
            _ = try group[1].result?.get()
            Issue.record("it was stored")
        } catch {
            #expect((error as? HTTPError)?.status == 413)
        }
        #expect(throws: HTTPError.self) { try store(slow, in: archive) }
        #expect(archive.totals == ArchiveTotals(records: 2, batches: 2))
        #expect(try records("2026-11-21").compactMap { $0["id"] as? String } == ["a", "d"])
        let halved = try store(RawRequest.batch(["b0"]), in: archive)
        #expect(halved == Receipt(accepted: 1, duplicates: 0))
    }

    // MARK: Dates ahead

    private static let ahead = "2099-01-01T00:00:00.000Z"

    @Test func recordDatedAhead_isKeptAsItCame_butForItsClock() throws {
        let archive = try archive()
        let (soon, late) = (
            RawRequest.time(secondsAgo: -80_000), RawRequest.time(secondsAgo: -90_000)
        )
        let members = #","clock":"synced","a":{"clock":1}"#
        let sound = #","audio_data":"AAAA","audio_format":"wav","clock":"corrected""#
        for (id, members, time) in [
            ("now", members, soon), ("ahead", members, late),
            ("bare", #","Clock":2"#, Self.ahead), ("sound", sound, Self.ahead),
        ] {
            let body = RawRequest.batch([id], padding: members, time: time)
            #expect(try store(body, in: archive).accepted == 1)
        }
        var all: [String: [String: Any]] = [:]
        for day in Set([soon, late, Self.ahead].map { String($0.prefix(10)) }) {
            for record in try records(day) { all[record["id"] as? String ?? ""] = record }
        }
        let clocks = all.compactMapValues { $0["clock"] as? String }
        #expect(
            clocks == ["now": "synced", "ahead": "future", "bare": "future", "sound": "future"]
        )
        #expect(all.values.allSatisfy { $0["Clock"] == nil })
        #expect(all["ahead"]?["timestamp"] as? String == late)
        #expect((all["ahead"]?["a"] as? [String: Any])?["clock"] as? Int == 1)
        #expect((all["sound"]?["audio_file"] as? String)?.hasSuffix("_sound.wav") == true)
    }

    /// A server started without the time sees every record as ahead; their clocks are only
    /// reported.
    @Test func serverWhoseOwnClockIsNotSynced_replacesNoClock() throws {
        let archive = try archive(isClockSynced: false)
        let members = #","clock":"synced""#
        let body = RawRequest.batch(["a"], padding: members, time: Self.ahead)
        #expect(try store(body, in: archive).accepted == 1)
        #expect(try records("2099-01-01").map { $0["clock"] as? String } == ["synced"])
    }
}
