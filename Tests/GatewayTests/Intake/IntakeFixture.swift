// The intake socket with a simulated disk that a test controls.
import CLinux
import Foundation
import Glibc
import Records
import Support
import Synchronization
import Testing

import Daemon
@testable import Host
@testable import Intake
import Setup

/// A sink that stores at once or when released, or refuses.
final class FakeSink: IntakeSink {
    private struct State {
        var kept: [UserRecord] = []
        var batches: [Int] = []
        var isHeld = false
        var held: (records: [UserRecord], done: @Sendable ((any Error)?) -> Void)?
        var refusal: (any Error)?
    }

    let putBytes: Int

    init(putBytes: Int = 4 << 20) { self.putBytes = putBytes }

    private let state = Mutex(State())

    var kept: [UserRecord] { state.withLock { $0.kept } }
    /// The records of each call, in order.
    var batches: [Int] { state.withLock { $0.batches } }
    var isHolding: Bool { state.withLock { $0.held != nil } }

    /// From now on batches wait for `release`.
    func hold() { state.withLock { $0.isHeld = true } }

    func refuse(_ reason: String?) {
        state.withLock { $0.refusal = reason.map { Refused(description: $0) } }
    }

    func refuse(_ error: any Error) { state.withLock { $0.refusal = error } }

    /// Stores waiting batches, and later ones at once.
    func release() {
        let held = state.withLock { state in
            state.isHeld = false
            defer { state.held = nil }
            if let held = state.held { state.kept += held.records }
            return state.held
        }
        held?.done(nil)
    }

    func refusal(of stream: String) -> String? { nil }

    func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void) {
        let isOver = state.withLock { state -> Outcome? in
            state.batches.append(records.count)
            if let refusal = state.refusal { return Outcome(error: refusal) }
            if state.isHeld {
                #expect(state.held == nil, "two batches at a time")
                state.held = (records, done)
                return nil
            }
            state.kept += records
            return Outcome()
        }
        guard let isOver else { return }
        // Called from another thread, like the queue's writer.
        Thread.detachNewThread { done(isOver.error) }
    }

    private struct Outcome {
        var error: (any Error)?
    }

    private struct Refused: Error, CustomStringConvertible {
        var description: String
    }
}

extension LineLimits {
    static func intake(clients: Int = 256, stop: Duration = .seconds(1)) -> Self {
        var limits = Self.pipeline
        (limits.clients, limits.stop) = (clients, stop)
        return limits
    }
}

/// A server on its own thread, in a temporary folder.
final class IntakeFixture {
    private let temporary = TemporaryFolder()
    var folder: String { temporary.path }
    let sink: FakeSink
    let clock = ManualClock(
        testStart
    )
    let server: IntakeServer
    let thread: StoppableThread

    var path: String { folder + "/intake" }

    static func stream(
        _ name: String,
        rate: Double = 100_000,
        bytes: Int = 16_000
    ) -> UserStream {
        var stream = UserStream(name: name)
        stream.maxRate = rate
        stream.maxRecordBytes = bytes
        return stream
    }

    init(
        _ streams: [UserStream] = [IntakeFixture.stream("weather")],
        limits: LineLimits = .pipeline,
        putBytes: Int = 4 << 20
    ) throws {
        sink = FakeSink(putBytes: putBytes)
        let server = try IntakeServer(
            path: temporary.path + "/intake",
            streams: streams,
            sink: sink,
            clock: clock,
            limits: limits
        )
        self.server = server
        thread = try StoppableThread("intake") { server.run(until: $0) }
    }

    deinit {
        thread.stop()
    }

    func stop() { thread.stop() }

    func connect() throws -> IntakePeer { try IntakePeer(path) }

    var configuration: Configuration {
        var configuration = Configuration()
        configuration.runtimeDirectory = folder
        configuration.stateDirectory = folder
        return configuration
    }
}

/// A minimal client of the socket.
final class IntakePeer {
    private let socket: Descriptor
    private var received: [UInt8] = []

    init(_ path: String) throws {
        let number = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        socket = Descriptor(owning: number)
        let code = UnixSocket.withAddress(Array(path.utf8)) { Glibc.connect(number, $0, $1) }
        guard code == 0 else { throw SystemError.last("connect", on: path) }
    }

    /// Sends all bytes, waiting for room.
    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = trySend(rest)
            guard sent >= 0 else { throw SystemError.last("send") }
            rest = rest.dropFirst(sent)
            guard sent == 0 else { continue }
            var entries = [PollEntry(socket.number, PollEntry.writable)]
            guard wait(for: &entries, timeout: .seconds(60)) > 0 else {
                throw NeverHappened(what: "room to send")
            }
        }
    }

    /// Sends as much as fits; returns 0 if nothing fits, -1 if the other end is gone.
    func trySend(_ bytes: ArraySlice<UInt8>) -> Int {
        let sent = bytes.withUnsafeBytes {
            Glibc.send(
                socket.number,
                $0.baseAddress,
                $0.count,
                Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
            )
        }
        return sent < 0 && errno == EAGAIN ? 0 : sent
    }

    /// Shuts down sending; answers can still be read.
    func endInput() { shutdown(socket.number, Int32(SHUT_WR)) }

    /// Returns the next answer; nil if the other end has closed.
    func answer() throws -> String? {
        while true {
            if let end = received.firstIndex(of: 10) {
                defer { received.removeSubrange(...end) }
                return String(decoding: received[..<end], as: UTF8.self)
            }
            var entries = [PollEntry(socket.number)]
            guard wait(for: &entries, timeout: .seconds(60)) > 0 else {
                throw NeverHappened(what: "an answer")
            }
            var bytes = [UInt8](repeating: 0, count: 64 << 10)
            let count = recv(socket.number, &bytes, bytes.count, 0)
            guard count > 0 else { return nil }
            received += bytes.prefix(count)
        }
    }

    func answers(_ count: Int) throws -> [String?] { try (0..<count).map { _ in try answer() } }

    func ask(_ line: String) throws -> String? {
        try send(line + "\n")
        return try answer()
    }
}
