// Jobs over a real queue, with kills between their steps.
import Foundation
import Host
import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

@testable import Remote

@Suite struct JobRunnerTests {
    /// A gateway that counts what it does.
    private final class Gateway: JobGateway {
        let content = Locked("")
        let fetches = Locked(0)
        let done = Locked([RemoteJob.Action]())
        let uploads = Locked(0)
        let last = Locked<JobReply?>(nil)
        let warnings = Locked([String]())
        let allowed = Locked(["operate"])
        /// Called while a job is done.
        let during = Locked<(@Sendable () -> Void)?>(nil)
        let pause = Locked(Duration.milliseconds(1))
        /// Whether the next job ends with the process, not with an outcome.
        let isCut = Locked(false)

        var remote: RemoteSettings {
            var settings = RemoteSettings()
            settings.allow = allowed.value
            return settings
        }

        var interval: Duration { pause.value }

        func fetch(until stop: StopSignal) -> [UInt8]? {
            fetches.update { $0 += 1 }
            return Array(content.value.utf8)
        }

        func perform(_ action: RemoteJob.Action, until stop: StopSignal) -> JobOutcome? {
            during.value?()
            done.update { $0.append(action) }
            return isCut.value ? nil : JobOutcome(.done, "well", detail: "{\"a\":[1]}")
        }

        func uploadReplies() { uploads.update { $0 += 1 } }
        func publish(_ reply: JobReply) { last.update { $0 = reply } }
        func warn(_ what: String) { warnings.update { $0.append(what) } }
    }

    /// One life of a process: a queue and the thread that does jobs.
    private final class Life {
        let queue: Queue
        let gateway: Gateway
        let offers: OfferedJobs
        private let thread: StoppableThread

        init(
            _ database: String,
            _ gateway: Gateway = Gateway(),
            clock: any HostClock = SystemClock()
        )
            throws
        {
            let (queue, offers) = (try Queue(at: database, clock: clock), try OfferedJobs())
            (self.queue, self.gateway, self.offers) = (queue, gateway, offers)
            thread = try StoppableThread("remote") { stop in
                var runner = JobRunner(queue, clock, offers, gateway)
                runner.run(until: stop)
            }
        }

        func end() {
            #expect(thread.stop(by: SystemClock().now() + .seconds(60)))
            queue.close()
        }

        func offer(_ tag: String, _ jobs: String) {
            gateway.content.update { $0 = "{\"tag\": \"\(tag)\", \"jobs\": [\(jobs)]}" }
            offers.offer(tag)
        }

        func waitUntilHandled(_ tag: String) throws {
            try waitUntil("\(tag) is handled") { offers.open == nil && replies() >= 0 }
        }

        func replies() -> Int64 { queue.newest(.replies) }
    }

    private let temporary = TemporaryFolder()

    /// Copies the database as a kill would leave it; returns the copy's path.
    private func killed(_ name: String) throws -> String {
        let folder = "\(temporary.path)/\(name)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for file in ["", "-wal"] {
            try FileManager.default.copyItem(
                atPath: temporary.database + file,
                toPath: "\(folder)/queue.sqlite\(file)"
            )
        }
        return "\(folder)/queue.sqlite"
    }

    /// Returns job, state and message of each reply.
    private func stored(_ database: String) throws -> [String] {
        let connection = try Connection(path: database, access: .readOnly)
        let row = try connection.prepare(
            "SELECT job, kind, state, message FROM replies ORDER BY id"
        )
        var replies: [String] = []
        while try row.step() {
            replies.append((0..<4).map { row.text($0) }.joined(separator: " "))
        }
        return replies
    }

    private static let report = #"{"id": "r1", "kind": "report"}"#
    private static let sync = #"{"id": "s1", "kind": "sync"}"#

    @Test func job_isDoneOnce_alsoAfterARestart() throws {
        let life = try Life(temporary.database)
        life.offer("one", "\(Self.report), \(Self.sync), \(Self.sync)")
        try life.waitUntilHandled("one")
        #expect(life.gateway.done.value == [.report, .sync])
        #expect(life.gateway.last.value?.kind == "sync")
        #expect(life.gateway.uploads.value > 0)
        // The same tag costs nothing, and the same jobs under another one are known.
        life.offers.offer("one")
        life.offer("two", "\(Self.sync), \(Self.report)")
        try life.waitUntilHandled("two")
        #expect(life.gateway.fetches.value == 2)
        life.end()
        let next = try Life(temporary.database)
        next.offers.offer("two")
        next.offer("three", "\(Self.sync), \(Self.report)")
        try next.waitUntilHandled("three")
        #expect(next.gateway.done.value.isEmpty && next.gateway.fetches.value == 1)
        next.end()
        #expect(try stored(temporary.database) == ["r1 report done well", "s1 sync done well"])
    }

    /// Before the first commit nothing is known; in the job it is never done again; after the reply
    /// it is answered.
    @Test func kill_atAnyPoint_repeatsNothing() throws {
        let life = try Life(temporary.database)
        try life.queue.flushed()
        let before = try killed("before")
        let copies = Locked<[String]>([])
        let test = self
        life.gateway.during.update { during in
            during = {
                if let copy = try? test.killed("during") { copies.update { $0.append(copy) } }
            }
        }
        life.offer("one", Self.report)
        try life.waitUntilHandled("one")
        let after = try killed("after")
        life.end()
        let expected = [
            (before, ["r1 report done well"], 1),
            (
                try #require(copies.value.first),
                [
                    "r1 report failed interrupted: the gateway ended before it was answered; "
                        + "it is not done again"
                ], 0
            ), (after, ["r1 report done well"], 0),
        ]
        for (database, replies, count) in expected {
            for isFirst in [true, false] {
                let next = try Life(database)
                next.offer("again \(isFirst)", Self.report)
                try next.waitUntilHandled("again")
                #expect(next.gateway.done.value.count == (isFirst ? count : 0))
                next.end()
            }
            #expect(try stored(database) == replies)
        }
    }

    @Test func stop_duringAJob_answersAtTheNextStart() throws {
        let life = try Life(temporary.database)
        life.gateway.isCut.update { $0 = true }
        life.offer("one", Self.sync)
        try waitUntil("the job") { life.gateway.done.value.count == 1 }
        life.end()
        let next = try Life(temporary.database)
        try waitUntil("its answer") { next.replies() == 1 }
        next.end()
        #expect(try stored(temporary.database)[0].hasPrefix("s1 sync failed interrupted"))
    }

    @Test func refusals_sayWhy() throws {
        let clock = ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: 1),
                wall: WallTime(milliseconds: 1_795_132_800_000)
            )
        )
        let life = try Life(temporary.database, clock: clock)
        life.gateway.allowed.update { $0 = ["upgrade"] }
        life.offer("one", Self.sync)
        try life.waitUntilHandled("one")
        life.gateway.allowed.update { $0 = ["operate"] }
        clock.advance(by: .seconds(1))
        // Nobody knows the time: nothing has expired.
        let old = #""kind": "sync", "until": "2026-11-01T00:00:00Z""#
        life.offer("two", #"{"id": "a", \#(old)}"#)
        try life.waitUntilHandled("two")
        let now = clock.stamp()
        try life.queue.perform { try $0.recordClock(now, synced: true, by: .kernel) }
        clock.advance(by: .seconds(1))
        life.offer("three", #"{"id": "b", \#(old)}, {"id": "c", "kind": "dance"}"#)
        try life.waitUntilHandled("three")
        #expect(life.gateway.done.value == [.sync])
        life.end()
        #expect(
            try stored(temporary.database) == [
                "s1 sync refused remote.allow of this device does not have \"operate\"",
                "a sync done well", "b sync expired it was due until 2026-11-01T00:00:00.000Z",
                "c dance refused this version of Waypost has no jobs of the kind \"dance\"",
            ]
        )
    }

    @Test func nothingAllowed_asksForNothing() throws {
        let life = try Life(temporary.database)
        life.gateway.allowed.update { $0 = [] }
        life.offer("one", Self.sync)
        life.gateway.allowed.update { $0 = ["operate"] }
        life.offers.offer("one")
        try life.waitUntilHandled("one")
        #expect(life.gateway.fetches.value == 1)
        life.end()
    }

    @Test func malformedList_isLoggedOnce_andHandled() throws {
        let life = try Life(temporary.database)
        life.gateway.content.update { $0 = "{\"tag\": \"one\", \"jobs\": 7}" }
        for _ in 0..<5 { life.offers.offer("one") }
        try life.waitUntilHandled("one")
        life.offers.offer("one")
        #expect(life.gateway.warnings.value.count == 1)
        #expect(life.gateway.done.value.isEmpty && life.replies() == 0)
        life.end()
    }

    /// A server that sends a new tag with every answer.
    @Test func newTags_costOneRequestPerInterval() throws {
        let clock = ManualClock(
            Stamp(boot: BootInstant(nanoseconds: 1), wall: WallTime(milliseconds: 1))
        )
        let life = try Life(temporary.database, clock: clock)
        life.gateway.pause.update { $0 = .seconds(300) }
        life.offer("0", Self.sync)
        try life.waitUntilHandled("0")
        for number in 1..<100 { life.offer("\(number)", #"{"id": "\#(number)", "kind": "sync"}"#) }
        #expect(life.gateway.fetches.value == 1)
        clock.advance(by: .seconds(300))
        life.offers.offer("99")
        try life.waitUntilHandled("99")
        #expect(life.gateway.fetches.value == 2)
        #expect(life.gateway.done.value.count == 2)
        life.end()
    }

    @Test(arguments: ["report", "restart"])
    func costlyJobs_ofOneList_areLimited(_ kind: String) throws {
        let life = try Life(temporary.database)
        let jobs = (0..<64).map { #"{"id": "\#($0)", "kind": "\#(kind)", "source": "audio"}"# }
        life.offer("one", jobs.joined(separator: ","))
        try life.waitUntilHandled("one")
        #expect(life.gateway.done.value.count == 4)
        #expect(life.replies() == 64)
        life.end()
    }

    @Test func ids_areRememberedForTheNewestJobs() throws {
        var (stored, history) = ([String: String](), JobHistory { _ in nil })
        for number in 0..<1000 {
            let text = #"{"tag": "t", "jobs": [{"id": "job \#(number)"}]}"#
            var entry = history.next(try JobList(Array(text.utf8)).jobs[0])
            entry.isAnswered = true
            history.record(entry)
            stored[entry.memo] = entry.text
        }
        #expect(stored.count == Int(JobHistory.limit))
        let read = JobHistory { stored[$0] }
        for number in [0, 743] { #expect(!read.contains("job \(number)")) }
        for number in 744..<1000 {
            #expect(history.contains("job \(number)") && read.contains("job \(number)"))
        }
        #expect(JobHistory { _ in "1 done" }.interrupted.isEmpty)
        let last = JobHistory { _ in "\(Int64.max) begun report j" }
        #expect(last.entry(of: "k", "report").number == 1)
    }
}
