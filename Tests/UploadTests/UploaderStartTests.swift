// An uploader whose destination cannot be opened, and one that is abandoned.
import Configuration
import Foundation
import Host
import Queue
import QueueSupport
import StatusBoard
import Support
import Testing

import Upload

@Suite struct UploaderStartTests {
    private struct CannotBeOpened: Error {}

    /// An uploader on its thread, without a destination.
    private final class Bench {
        let folder = NSTemporaryDirectory() + "waypost-upload-" + UUID().uuidString
        let queue: Queue
        let board = Publisher<UploadReport>()
        let uploader: Uploader
        let stop: StopSignal
        private var thread: OwnThread?

        /// `runs` starts a thread that serves it, on which `opening` is called before opening
        /// fails.
        init(runs: Bool = true, opening: @escaping @Sendable () -> Void = {}) throws {
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            let path = folder + "/queue.sqlite"
            queue = try Queue(at: path)
            let uploader = Uploader(
                settings: UploadSettings { $0.clockPatience = .zero },
                queue: queue,
                board: board
            ) {
                opening()
                throw CannotBeOpened()
            }
            let stop = try StopSignal()
            (self.uploader, self.stop) = (uploader, stop)
            thread = runs ? try OwnThread("uploader") { uploader.run(until: stop) } : nil
        }

        func sync() throws -> SyncResult {
            let result = Locked<SyncResult?>(nil)
            uploader.sync { answer in result.update { $0 = answer } }
            try waitUntil("the answer", limit: .seconds(60)) { result.value != nil }
            return try #require(result.value)
        }

        func finish() {
            uploader.stop()
            stop.raise()
            if let thread = thread.take() { thread.join() }
            queue.close()
            try? FileManager.default.removeItem(atPath: folder)
        }
    }

    @Test func syncOfAnUploaderThatCannotStart_isAnswered() throws {
        let bench = try Bench()
        defer { bench.finish() }
        #expect(try bench.sync() == SyncResult())
        guard case .error = bench.board.state else {
            Issue.record("\(bench.board.state)")
            return
        }
    }

    @Test func syncOfAnUploaderThatHasEnded_isAnswered() throws {
        let bench = try Bench()
        bench.finish()
        #expect(try bench.sync() == SyncResult())
    }

    @Test func ticksDuringALongSync_leaveRoomForWhoAsks() throws {
        let bench = try Bench(runs: false)
        defer { bench.finish() }
        for _ in 0..<1000 { bench.uploader.tick() }
        let result = Locked<SyncResult?>(nil)
        bench.uploader.sync { answer in result.update { $0 = answer } }
        #expect(result.value == nil)
        bench.uploader.abandon()
        #expect(result.value == SyncResult())
    }

    @Test func uploaderThatWasAbandoned_tellsTheBoardNothingMore() throws {
        let (isIn, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let bench = try Bench {
            isIn.signal()
            _ = mayGo.wait(timeout: .now() + 60)
        }
        #expect(isIn.wait(timeout: .now() + 60) == .success)
        bench.uploader.abandon()
        mayGo.signal()
        bench.finish()
        guard case .unknown = bench.board.state else {
            Issue.record("\(bench.board.state)")
            return
        }
    }
}
