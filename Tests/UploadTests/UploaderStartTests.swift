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
    private final class Fixture {
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
        let fixture = try Fixture()
        defer { fixture.finish() }
        #expect(try fixture.sync() == SyncResult())
        guard case .error = fixture.board.state else {
            Issue.record("\(fixture.board.state)")
            return
        }
    }

    @Test func syncOfAnUploaderThatHasEnded_isAnswered() throws {
        let fixture = try Fixture()
        fixture.finish()
        #expect(try fixture.sync() == SyncResult())
    }

    @Test func ticksDuringALongSync_leaveRoomForWhoAsks() throws {
        let fixture = try Fixture(runs: false)
        defer { fixture.finish() }
        for _ in 0..<1000 { fixture.uploader.tick() }
        let result = Locked<SyncResult?>(nil)
        fixture.uploader.sync { answer in result.update { $0 = answer } }
        #expect(result.value == nil)
        fixture.uploader.abandon()
        #expect(result.value == SyncResult())
    }

    @Test func abandonedUploader_reportsNothingMore() throws {
        let (isIn, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let fixture = try Fixture {
            isIn.signal()
            _ = mayGo.wait(timeout: .now() + 60)
        }
        #expect(isIn.wait(timeout: .now() + 60) == .success)
        fixture.uploader.abandon()
        mayGo.signal()
        fixture.finish()
        guard case .unknown = fixture.board.state else {
            Issue.record("\(fixture.board.state)")
            return
        }
    }
}
