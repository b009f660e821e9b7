// Checks that memos with impossible numbers, which a damaged page may hold, stop nothing.
import Host
import QueueSupport
import Records
import Support
import Testing

@testable import Queue
@testable import Upload

@Suite struct DamagedMemoTests {
    private static let batch = Batch(
        id: 1,
        key: "k",
        stream: .audio,
        first: 3,
        last: 5,
        state: .ready,
        attempts: 0,
        clockMap: 0,
        sentAt: WallTime(milliseconds: 0),
        synced: false,
        appVersion: "",
        error: nil
    )

    @Test(arguments: ["9223372036854775807", "-9223372036854775808", "6"])
    func impossibleFailures_startAtZero(failures: String) throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        defer { queue.close() }
        queue.remember("failing_batches", #"[{"key":"k","failures":\#(failures)}]"#)
        var failing = FailingBatches(queue)
        #expect(!failing.waitsBehind(Self.batch))
        let isStuck = failing.resendFailed(Self.batch)
        #expect(!isStuck)
    }

    @Test(arguments: ["9223372036854775807", "2", "6", "-1"])
    func impossibleChunk_isNotThere(chunk: String) throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        defer { queue.close() }
        queue.remember("stored_sound", "k \(chunk) https://store")
        #expect(StoredAudio("https://store", queue).through(Self.batch) == nil)
    }
}
