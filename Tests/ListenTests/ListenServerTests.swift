// The listen socket with real programs' sockets: positions, slow readers, limits.
import Foundation
import Host
import Records
import StatusBoard
import Support
import Testing

@testable import Listen

/// A running server whose recording a test makes.
final class TestListen {
    let folder = TemporaryFolder()
    let tap: AudioTap
    let board = Publisher<ListenReport>()
    let clock = ManualClock(testStart)
    let thread: StoppableThread
    private let server: ListenServer

    init() throws {
        tap = try AudioTap()
        server = try ListenServer(
            path: folder.path + "/listen",
            tap: tap,
            facts: ListenFacts(
                deviceID: "site-1",
                date: { ($0.wall, true) },
                place: { (46.5, -6.25) }
            ),
            board: board,
            clock: clock
        )
        thread = try StoppableThread("listen") { [server] in server.run(until: $0) }
    }

    deinit { thread.stop(by: SystemClock().now() + .seconds(5)) }

    var report: ListenReport { board.state.value ?? ListenReport() }

    /// Connects; returns once the server has accepted the program.
    func connect() throws -> TestReader {
        let before = report.readers
        let reader = try TestReader(path: folder.path + "/listen")
        try waitUntil("a reader") { report.readers == before + 1 }
        return reader
    }

    func wake() { server.health.signal() }
}

/// A program that listens.
final class TestReader {
    let channel: LineChannel

    init(path: String) throws { channel = LineChannel(try UnixSocket.connect(to: path)) }

    /// Reads headers and samples until `frames` samples have come.
    func read(frames: Int) throws -> (headers: [AudioHeader], samples: [Int16]) {
        var (headers, samples): ([AudioHeader], [Int16]) = ([], [])
        while samples.count < frames {
            let header = try AudioHeader(line: try line())
            var bytes: [UInt8] = []
            try waitUntil("a block") {
                bytes += channel.input.takeBytes(atMost: header.bytes - bytes.count)
                if bytes.count < header.bytes { _ = channel.receive() }
                return bytes.count == header.bytes
            }
            headers.append(header)
            samples += stride(from: 0, to: bytes.count, by: 2).map {
                Int16(truncatingIfNeeded: Int(bytes[$0]) | Int(bytes[$0 + 1]) << 8)
            }
        }
        return (headers, samples)
    }

    func line() throws -> [UInt8] {
        var line: LineBuffer.Line?
        try waitUntil("a line") {
            line = channel.input.next(limit: 4096)
            if line == nil { _ = channel.receive() }
            return line != nil
        }
        guard case .whole(let bytes) = line else { throw NeverHappened(what: "a short line") }
        return bytes
    }
}

@Suite struct ListenServerTests {
    @Test func eachReader_getsAllSamples_withTheirPlaces() throws {
        let listen = try TestListen()
        let readers = [try listen.connect(), try listen.connect()]
        // A sample each, so that a whole second of a fast recording is more than one block.
        for number in 0..<6 {
            listen.tap.pass(testBlock(frame: Int64(number) * 2000, frames: 2000))
        }
        for reader in readers {
            let (headers, samples) = try reader.read(frames: 12_000)
            #expect(samples == (0..<12_000).map { Int16($0) })
            #expect(headers.map(\.frame) == [0, 2000, 4000, 6000, 8000, 10_000])
            #expect(headers.allSatisfy { $0.lost == 0 && $0.run == 1 && $0.rate == 1000 })
            let start = AudioTime(testStart.wall)
            #expect(
                headers.map(\.start) == headers.map { start + .milliseconds($0.frame) }
            )
            #expect(
                headers.map(\.boottimeNs)
                    == headers.map { testStart.boot.nanoseconds + $0.frame * 1_000_000 }
            )
            #expect(headers.last?.device == "site-1")
            #expect(headers.last?.latitude == 46.5)
            #expect(headers.last?.longitude == -6.25)
        }
        try waitUntil("the sum") { listen.report.sent == 24_000 }
        #expect(listen.report.lost == 0)
    }

    /// One that reads nothing loses the oldest; the other one loses nothing.
    @Test func slowReader_losesOldestBlocks_andGetsTheirCount() throws {
        let listen = try TestListen()
        let (slow, fast) = (try listen.connect(), try listen.connect())
        let blocks = 200
        var heard = 0
        for number in 0..<blocks {
            listen.tap.pass(testBlock(frame: Int64(number) * 8000, frames: 8000))
            let (headers, _) = try fast.read(frames: 8000)
            #expect(headers.map(\.lost) == [0])
            #expect(headers.map(\.frame) == [Int64(heard)])
            heard += 8000
        }
        // What the kernel and the tap still hold comes first, then the newest.
        var (expected, lost) = (Int64(0), 0)
        while expected < Int64(blocks * 8000) {
            let (headers, samples) = try slow.read(frames: 1)
            let header = try #require(headers.first)
            #expect(header.frame == expected + Int64(header.lost))
            lost += header.lost
            expected = header.frame + Int64(samples.count)
        }
        #expect(lost > 0)
        #expect(listen.report.lost == lost)
    }

    @Test func tap_isOpenWhileSomebodyListens() throws {
        let listen = try TestListen()
        #expect(!listen.tap.isOpen)
        var reader: TestReader? = try listen.connect()
        #expect(listen.tap.isOpen)
        #expect(reader != nil)
        reader = nil
        try waitUntil("nobody listens") { listen.report.readers == 0 }
        try waitUntil("the tap is closed") { !listen.tap.isOpen }
    }

    /// One more is refused, unless one of the others has read nothing for a while.
    @Test func readers_haveALimit_andAStalledOneMakesRoom() throws {
        let listen = try TestListen()
        let stalled = try listen.connect()
        let others = try (1..<ListenReport.readerLimit).map { _ in try listen.connect() }
        #expect(others.count == 15)
        let refused = try TestReader(path: listen.folder.path + "/listen")
        #expect(String(decoding: try refused.line(), as: UTF8.self).contains("16 programs listen"))
        // More than the socket takes.
        for number in 0..<40 {
            listen.tap.pass(testBlock(frame: Int64(number) * 8000, frames: 8000))
            for other in others { _ = try other.read(frames: 8000) }
        }
        listen.clock.advance(by: ListenServer.stall)
        let new = try TestReader(path: listen.folder.path + "/listen")
        // The one that stalled is disconnected once its last bytes are read.
        try waitUntil("its end") { stalled.channel.receive() == .ended }
        listen.tap.pass(testBlock(frame: 320_000, frames: 8000))
        #expect(try new.read(frames: 8000).headers.map(\.frame) == [320_000])
        #expect(listen.report.readers == ListenReport.readerLimit)
    }

    @Test func senders_areNotRead() throws {
        let listen = try TestListen()
        let reader = try listen.connect()
        reader.channel.outgoing = Array(repeating: 65, count: 100_000)
        #expect(reader.channel.send(now: testStart.boot) == .ended)
    }

    /// The file is made again if somebody deletes it, and deleted at the end.
    @Test func socket_hasItsFile_whileTheServerRuns() throws {
        let listen = try TestListen()
        let path = listen.folder.path + "/listen"
        #expect(access(path, F_OK) == 0)
        unlink(path)
        listen.wake()
        try waitUntil("the file") { access(path, F_OK) == 0 }
        listen.thread.stop(by: SystemClock().now() + .seconds(5))
        #expect(access(path, F_OK) != 0)
    }

    @Test(arguments: [
        "", "{}", "{\"run\": 1", "[1]",
        #"{"run":1,"frame":0,"rate":0,"channels":1,"format":"S16_LE","bytes":2,"timestamp":"2026-11-21T04:30:07.123456Z","clock":"synced","boottime_ns":1,"lost":0,"device":"d"}"#,
        #"{"run":1,"frame":0,"rate":16000,"channels":1,"format":"S16_LE","bytes":3,"timestamp":"2026-11-21T04:30:07.123456Z","clock":"synced","boottime_ns":1,"lost":0,"device":"d"}"#,
        #"{"run":1,"frame":0,"rate":16000,"channels":1,"format":"S16_LE","bytes":2,"timestamp":"now","clock":"synced","boottime_ns":1,"lost":0,"device":"d"}"#,
    ])
    func header_ofAnotherProgram_isRefused(_ line: String) {
        #expect(throws: Failure.self) { try AudioHeader(line: Array(line.utf8)) }
    }

    @Test func time_isReadAndWritten_toTheMicrosecond() throws {
        let time = try #require(AudioTime(rfc3339: "2026-11-21T04:30:07.123456Z"))
        #expect(time.nanoseconds % 1_000_000_000 == 123_456_000)
        #expect(time.rfc3339 == "2026-11-21T04:30:07.123456Z")
        #expect((time + .nanoseconds(44_000)).wall.rfc3339 == "2026-11-21T04:30:07.124Z")
        #expect(AudioTime(rfc3339: "1969-11-21T04:30:07Z") == nil)
    }
}
