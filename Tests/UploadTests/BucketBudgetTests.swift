// A daily byte budget with a bucket: stored objects are not stored again in another form.
import Configuration
import Foundation
import Queue
import Records
import Support
import Testing

import Upload

@Suite struct BucketBudgetTests {
    /// Each chunk is an object: those that the day has room for are stored, once.
    @Test func bucket_storesWhatFits_andGoesOnThere() throws {
        let stored = Behaviour.answer(status: 200, body: "", headers: ["ETag: \"a\""])
        let region = "us-east-1"
        let fixture = try BudgetFixture(UploadSettings { $0.clockPatience = .zero }, region: region)
        {
            // The batch is frozen whole and stays pending.
            _ in .hangUp
        }
        fixture.addAudio(6)
        _ = fixture.sync.perform(.tick)
        fixture.finish()
        let then = try BudgetFixture(.budget(200_000), region: region, temporary: fixture.temporary)
        {
            _ in stored
        }
        defer { then.finish() }
        _ = then.sync.perform(.tick)
        let first = then.server.requests.map(\.path)
        #expect((1...3).contains(first.count))
        #expect(try then.pending(.audio) == 6)
        _ = then.sync.perform(.tick)
        #expect(then.server.requests.count == first.count)
        then.pass(hours: 24)
        for _ in 1...12 where try then.pending(.audio) > 0 {
            _ = then.sync.perform(.tick)
            then.pass(hours: 12)
        }
        let paths = then.server.requests.map(\.path)
        #expect(paths.count == 7 && Set(paths).count == 7)
    }

    /// Freezes a batch of audio in an outage, before there was a budget.
    private func bucketAfterOutage(budget: Int64, chunks: Int) throws -> BudgetFixture {
        let stored = Behaviour.answer(status: 200, body: "", headers: ["ETag: \"a\""])
        let region = "us-east-1"
        let fixture = try BudgetFixture(UploadSettings { $0.clockPatience = .zero }, region: region)
        {
            _ in .hangUp
        }
        fixture.addAudio(chunks)
        _ = fixture.sync.perform(.tick)
        fixture.finish()
        let settings = UploadSettings.budget(budget) { $0.destination = .s3 }
        return try BudgetFixture(settings, region: region, temporary: fixture.temporary) { _ in
            stored
        }
    }

    /// Each has to be alone in its batch for that.
    @Test func bucket_storesChunksLongerThanABudget_oneADay() throws {
        let then = try bucketAfterOutage(budget: 30_000, chunks: 2)
        defer { then.finish() }
        for _ in 1...36 {
            then.pass(hours: 2)
            _ = then.sync.perform(.tick)
        }
        #expect(try then.pending(.audio) == 0)
    }

    /// Half a batch has the same chunks, each an object: halving would store them again.
    @Test func bucket_storesEachChunkOnce_onAnyRemainingBudget() throws {
        let then = try bucketAfterOutage(budget: 200_000, chunks: 6)
        defer { then.finish() }
        // After a busy day the small streams are expected to need nearly all of each day.
        then.pass(hours: 24)
        addFixes(1180, to: then.queue)
        for _ in 1...72 where try then.pending(.audio) > 0 {
            _ = then.sync.perform(.tick)
            then.pass(hours: 1)
        }
        #expect(try then.pending(.audio) == 0)
        let sound = then.server.requests.map(\.path).filter { $0.contains("audio") }
        #expect(sound.count == 7 && Set(sound).count == 7)
    }

    /// The store has kept the object, its answer was lost, and now no day has room for all of it.
    @Test func bucket_hasEachRecordOnce_thoughTheBudgetWasLowered() throws {
        let isLost = Locked(true)
        let settings = UploadSettings {
            $0.clockPatience = .zero
            $0.destination = .s3
        }
        let region = "us-east-1"
        let fixture = try BudgetFixture(settings, region: region) { _ in
            isLost.value
                ? .hangUp : .answer(status: 200, body: "", headers: ["ETag: \"a\""])
        }
        defer { fixture.finish() }
        addFixes(900, to: fixture.queue)
        _ = fixture.sync.perform(.tick)
        isLost.update { $0 = false }
        try fixture.reload(.budget(50_000) { $0.destination = .s3 })
        for _ in 1...12 where try fixture.pending(.location) > 0 {
            _ = fixture.sync.perform(.tick)
            fixture.pass(hours: 12)
        }
        #expect(try fixture.pending(.location) == 0)
        // An object replaces an earlier one of the same name.
        let objects = Dictionary(
            fixture.server.requests.map { ($0.path, $0.body) },
            uniquingKeysWith: { $1 }
        )
        let lines = objects.values.reduce(0) { $0 + $1.split(separator: 10).count }
        #expect(lines == 900)
    }
}
