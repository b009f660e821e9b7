// The control socket: valid requests, no delayed answers, and none sent to another client.
import Foundation
import Host
import Queue
import QueueSupport
import Support
import Testing
import Upload

@testable import Daemon
@testable import Setup
@testable import Status

/// A control socket over a real queue, whose disk and long work can be made to hang.
private final class Fixture {
    private let temporary = TemporaryFolder()
    var folder: String { temporary.path }
    var configuration = Configuration()
    let queue: Queue
    let plane: ControlPlane
    let publication: StatusPublication
    /// Unfinished work: its request, and the callback for the reply.
    let work = StateBox([(ControlRequest, @Sendable (ControlReply) -> Void)]())
    let gathered = StateBox(0)
    private let disk: Gate

    /// Blocks callers until it is open.
    final class Gate: Sendable {
        private let isOpen: StateBox<Bool>

        init(isOpen: Bool) { self.isOpen = StateBox(isOpen) }

        func open() { isOpen.update { $0 = true } }

        func pass() {
            while !isOpen.value { Thread.sleep(forTimeInterval: 0.01) }
        }
    }

    init(_ limits: LineLimits = .dialogue, diskHangs: Bool = false) throws {
        configuration.stateDirectory = temporary.path
        configuration.runtimeDirectory = temporary.path
        let queue = try Queue(at: temporary.path + "/q.sqlite")
        self.queue = queue
        let (disk, gathered, configuration, work) = (
            Gate(isOpen: !diskHangs), gathered, configuration, work
        )
        self.disk = disk
        publication = try StatusPublication(
            gather: {
                disk.pass()
                gathered.update { $0 += 1 }
                let now = SystemClock().now()
                return StoredFigures(queue, configuration, since: now, at: now)
            },
            compose: { figures, _ in
                var report = Snapshot.report(
                    configuration,
                    .silent(path: "", pid: 7),
                    version: "test"
                )
                report.daemon.rssBytes = figures == nil ? 0 : 1
                return report
            }
        )
        plane = try ControlPlane(
            path: configuration.socketPath,
            status: publication,
            limits: limits
        ) { request, done in
            work.update { $0.append((request, done)) }
        }
        try publication.start()
    }

    deinit {
        disk.open()
        plane.stop(by: SystemClock().now() + StoppableThread.stopLimit)
        publication.stop()
        queue.close()
    }

    func client() throws -> ControlClient { try ControlClient(configuration) }
}

@Suite struct ControlTests {
    private static let patience = Duration.seconds(60)

    @Test func requests_areOfOneShape_andNothingElseIsOne() throws {
        for command in ControlRequest.Command.allCases {
            for argument in [nil, "7", #"x"y\n"#] {
                let request = ControlRequest(command, argument)
                #expect(ControlRequest(line: request.json) == request)
            }
        }
        #expect(ControlRequest(line: Array(#"{ "command" : "sync" }"#.utf8)) == .init(.sync))
        for line in [
            "", "{}", "null", "[]", "status", #"{"command":"rm"}"#, #"{"command":"drop"}"#,
            #"{"command":"quarantine drop","argument":1}"#, "\u{0}",
        ] {
            #expect(ControlRequest(line: Array(line.utf8)) == nil, "\(line)")
        }
        let fixture = try Fixture()
        #expect(throws: (any Error).self) {
            try fixture.client().ask(.init(.watch), timeout: .zero)
        }
    }

    @Test func status_hasFiguresOfNow() throws {
        let fixture = try Fixture()
        let client = try fixture.client()
        for round in 1...3 {
            let reply = try client.ask(.init(.status), timeout: Self.patience)
            #expect(reply.status?.daemon.rssBytes == 1)
            #expect(fixture.gathered.value >= round)
        }
    }

    @Test func whileTheDiskHangs_statusIsWhatMemoryHas() throws {
        let fixture = try Fixture(diskHangs: true)
        let reply = try fixture.client().ask(.init(.status), timeout: Self.patience)
        #expect(reply.status?.daemon.running == true)
        #expect(reply.status?.daemon.rssBytes == 0)
        #expect(fixture.gathered.value == 0)
    }

    @Test func clientRejectedBeforeItsRequest_getsTheReason() throws {
        var limits = LineLimits.dialogue
        limits.clientsOfOneUser = 1
        let fixture = try Fixture(limits)
        let first = try fixture.client()
        #expect(throws: ControlError.self) {
            try first.ask(.init(.surveyStop), timeout: .milliseconds(1))
        }
        // Before that it counts as idle and makes room for another.
        try waitUntil("its request") { !fixture.work.value.isEmpty }
        let late = try fixture.client()
        // Clients are accepted in order: once this one is answered, so was the one before.
        let error = try #require(fixture.client().next(timeout: Self.patience)?.error)
        #expect(error.contains("programs are being answered"))
        #expect(throws: Failure(error)) { try late.ask(.init(.status), timeout: Self.patience) }
    }

    @Test func longRequest_blocksNoOtherClient_norItsNextRequest() throws {
        let fixture = try Fixture()
        let first = try fixture.client()
        #expect(throws: ControlError.self) {
            try first.ask(.init(.surveyStop), timeout: .milliseconds(1))
        }
        try waitUntil("the request") { !fixture.work.value.isEmpty }
        #expect(try fixture.client().ask(.init(.status), timeout: Self.patience).status != nil)
        for (_, done) in fixture.work.value { done(ControlReply(done: true)) }
        #expect(first.next(timeout: Self.patience)?.done == true)
        #expect(try first.ask(.init(.status), timeout: Self.patience).status != nil)
    }

    @Test func requestThatIsAnsweredTwice_hasOneReply() throws {
        let fixture = try Fixture()
        let client = try fixture.client()
        #expect(throws: ControlError.self) {
            try client.ask(.init(.surveyStop), timeout: .milliseconds(1))
        }
        try waitUntil("the request") { !fixture.work.value.isEmpty }
        for (_, done) in fixture.work.value + fixture.work.value { done(ControlReply(done: true)) }
        #expect(client.next(timeout: Self.patience)?.done == true)
        #expect(try client.ask(.init(.status), timeout: Self.patience).status != nil)
    }

    @Test func resultOfASync_neverGoesToAnother() throws {
        let fixture = try Fixture()
        // The next client gets the number of its descriptor.
        do {
            let first = try fixture.client()
            #expect(try first.ask(.init(.sync), timeout: Self.patience).status != nil)
        }
        try waitUntil("the request") { !fixture.work.value.isEmpty }
        let others = try (0..<40).map { _ in try fixture.client() }
        for other in others {
            #expect(try other.ask(.init(.watch), timeout: Self.patience).status != nil)
        }
        for (_, done) in fixture.work.value { done(ControlReply(done: true)) }
        // Each still watches: it gets only the next change.
        for other in others {
            let push = try #require(other.next(timeout: Self.patience))
            #expect(push.done == nil)
            #expect(push.status != nil)
        }
    }

    @Test func sync_isFollowed_andEndsWithTheStateAfterIt() throws {
        let fixture = try Fixture()
        let client = try fixture.client()
        #expect(try client.ask(.init(.sync), timeout: Self.patience).status != nil)
        try waitUntil("the request") { !fixture.work.value.isEmpty }
        var result = ControlReply(done: false)
        result.sync = .init(left: 3, quarantined: 1)
        for (request, done) in fixture.work.value where request.command == .sync { done(result) }
        var reply = client.next(timeout: Self.patience)
        while let now = reply, now.done == nil { reply = client.next(timeout: Self.patience) }
        #expect(reply?.sync == .init(left: 3, quarantined: 1))
        #expect(reply?.status != nil)
    }

    @Test func idleClients_areLetGo_andMakeRoom() throws {
        var limits = LineLimits.dialogue
        limits.clients = 8
        let crowded = try Fixture(limits)
        let idle = try (0..<20).map { _ in try crowded.client() }
        #expect(try crowded.client().ask(.init(.status), timeout: Self.patience).status != nil)
        #expect(idle[0].next(timeout: Self.patience) == nil)

        limits.idle = .milliseconds(1)
        let quiet = try Fixture(limits)
        let client = try quiet.client()
        #expect(client.next(timeout: Self.patience) == nil)
    }

    @Test func watchers_areNotPushedAside() throws {
        var limits = LineLimits.dialogue
        limits.clients = 2
        let fixture = try Fixture(limits)
        let watchers = try (0..<2).map { _ in try fixture.client() }
        for watcher in watchers {
            #expect(try watcher.ask(.init(.watch), timeout: Self.patience).status != nil)
        }
        let third = try fixture.client()
        #expect(third.next(timeout: Self.patience)?.error?.contains("try again later") == true)
        for _ in 0..<3 {
            fixture.plane.changed()
            for watcher in watchers {
                #expect(watcher.next(timeout: Self.patience)?.status != nil)
            }
        }
    }

    @Test func floodOfRequests_isCutOff() throws {
        let fixture = try Fixture()
        let flood = try IntakePeer(fixture.configuration.socketPath)
        // More than any client has to ask at once; a client that is cut off cannot send it all.
        try? flood.send([UInt8](repeating: 10, count: 1 << 20))
        var answers = 0
        while try flood.answer() != nil { answers += 1 }
        #expect(answers < 100)
    }
}
