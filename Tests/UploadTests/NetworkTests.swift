// Network failures: whatever happens on the wire, the batch is unchanged and the next sync delivers
// it.
import Foundation
import Glibc
import Host
import Queue
import Records
import StatusBoard
import Support
import Testing
@testable import HTTP
import Upload

@Suite struct NetworkTests {
    @Test(arguments: WireFault.all)
    func fault_keepsTheBatchAsItIs(fault: WireFault) throws {
        let isFaulty = Locked(true)
        let timeout = fault.isSlow ? Duration.milliseconds(400) : .seconds(30)
        let fixture = try UploadFixture(timeout: timeout) { _ in
            isFaulty.value ? fault.behaviour : .ok
        }
        defer { fixture.finish() }
        fixture.add(50)
        #expect(try !fixture.sync())
        let failed = try #require(fixture.board.state.value)
        #expect(failed.streams[.location]?.lastError?.failure.code?.rawValue == fault.code)
        #expect(failed.phase == .waiting)
        #expect(failed.notBefore != nil)
        #expect(fixture.figures?.pending == 50)
        #expect(fixture.figures?.uploaded == 0)
        let kept = try #require(try fixture.queue.flushed().nextReady(.location))
        #expect(kept.attempts == 0)
        // Collecting continues, and the next sync first sends the identical request.
        fixture.add(5)
        isFaulty.update { $0 = false }
        // On a busy machine even a good answer may exceed such a short timeout.
        try waitUntil("everything is sent") { try fixture.sync() }
        let sent = try fixture.server.requests.map(SentBatch.init)
        #expect(sent.filter { $0.first == 1 }.allSatisfy { $0.key == "\"\(kept.key)\"" })
        #expect(sent.filter { $0.first == 1 }.allSatisfy { $0.body == sent[0].body })
        #expect(fixture.figures?.uploaded == 55)
        #expect(fixture.board.state.value?.streams[.location]?.lastError == nil)
    }

    @Test(arguments: OddAnswer.all)
    func oddAnswer_isAccepted(answer: OddAnswer) throws {
        let fixture = try UploadFixture { _ in answer.behaviour }
        defer { fixture.finish() }
        fixture.add(3)
        #expect(try fixture.sync())
        #expect(fixture.figures?.uploaded == 3)
        #expect(fixture.server.requests.count == 1)
    }

    @Test func rejectedBehindMegabytesOfIds_isARefusal() throws {
        let answer = "HTTP/1.0 200 OK\r\n\r\n" + OddAnswer.ids(3 << 20) + "\"\"], \"rejected\": 1}"
        let fixture = try UploadFixture { request in
            (try? SentBatch(request)).map { $0.last - $0.first == 2 } ?? false
                ? .play { Wire.send($0, answer) } : .ok
        }
        defer { fixture.finish() }
        fixture.add(3)
        #expect(try fixture.sync())
        #expect(fixture.figures?.uploaded == 3)
        #expect(fixture.server.requests.count == 3)
    }

    @Test func keptAliveConnection_closedByTheServer_isNoError() throws {
        let fixture = try UploadFixture { _ in
            .play { Wire.send($0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") }
        }
        defer { fixture.finish() }
        for round in 1...5 {
            fixture.add(3)
            #expect(try fixture.sync())
            #expect(fixture.figures?.uploaded == 3 * round)
            #expect(fixture.server.requests.count == round)
        }
        #expect(fixture.server.connectionCount == 5)
        #expect(fixture.board.state.value?.streams[.location]?.lastError == nil)
    }

    @Test func keptAliveConnection_isUsedAgain() throws {
        let fixture = try UploadFixture { _ in .ok }
        defer { fixture.finish() }
        for _ in 1...5 {
            fixture.add(3)
            #expect(try fixture.sync())
        }
        #expect(fixture.server.connectionCount == 1)
    }

    @Test(arguments: [
        "http://127.0.0.1:1/api/ingest", "http://waypost-nowhere.invalid/api/ingest",
        "http://[100::1]:9/api/ingest", "http://localhost:1/api/ingest",
    ])
    func nobodyThere_isANetworkErrorWithTheAddress(endpoint: String) throws {
        let fixture = try UploadFixture(endpoint: endpoint, timeout: .milliseconds(500)) { _ in .ok
        }
        defer { fixture.finish() }
        fixture.add(5)
        #expect(try !fixture.sync())
        let failure = fixture.board.state.value?.streams[.location]?.lastError?.failure
        #expect(failure?.code == .network)
        #expect(failure?.message.hasPrefix("\(endpoint): ") == true)
        #expect(fixture.figures?.pending == 5)
    }

    @Test func silentConnect_endsByTheTimeout() throws {
        let silent = try FullBacklog()
        let fixture = try UploadFixture(
            endpoint: "http://127.0.0.1:\(silent.server.port)/api/ingest",
            timeout: .milliseconds(500)
        ) { _ in .ok }
        defer { fixture.finish() }
        fixture.add(5)
        #expect(try !fixture.sync())
        let failure = fixture.board.state.value?.streams[.location]?.lastError?.failure
        #expect(failure?.code == .network)
        #expect(failure?.message.contains("curl 28") == true)
    }

    @Test func silentIPv6_fallsBackToIPv4() throws {
        let fixture = try UploadFixture(change: { settings in
            let port = settings.transport.endpoint.split(separator: ":")[2].prefix { $0.isNumber }
            settings.transport.endpoint = "http://localhost:\(port)/api/ingest"
        }) { _ in .ok }
        defer { fixture.finish() }
        // The same port of the other address family, which answers nothing; machines without ::1
        // skip this.
        guard let silent = try? FullBacklog(port: fixture.server.port, isIPv6: true) else { return }
        fixture.add(5)
        #expect(try fixture.sync())
        #expect(fixture.figures?.uploaded == 5)
        withExtendedLifetime(silent) {}
    }

    @Test func hostWithoutIPv4_isTriedOverIPv6Again() throws {
        let isSilent = Locked(true)
        let server = try? PlainServer(isIPv6: true) { client in
            if isSilent.value { return Wire.waitForEnd(client) }
            var block = [UInt8](repeating: 0, count: 4096)
            _ = recv(client, &block, block.count, 0)
            Wire.send(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            // Closing before the body was read would be a reset.
            Wire.waitForEnd(client)
        }
        guard let server else { return }
        defer { server.close() }
        let fixture = try UploadFixture(
            endpoint: "http://[::1]:\(server.port)/api/ingest",
            // The answer has to arrive within it too, on a busy machine.
            timeout: .seconds(2)
        ) { _ in .ok }
        defer { fixture.finish() }
        fixture.add(5)
        #expect(try !fixture.sync())
        let failure = fixture.board.state.value?.streams[.location]?.lastError?.failure
        #expect(failure?.message.contains("no progress") == true)
        isSilent.update { $0 = false }
        #expect(try fixture.sync())
    }

    @Test func silentTLS_endsByTheTimeout() throws {
        let server = try PlainServer { Wire.waitForEnd($0) }
        defer { server.close() }
        let fixture = try UploadFixture(
            endpoint: "https://127.0.0.1:\(server.port)/api/ingest",
            timeout: .milliseconds(500)
        ) { _ in .ok }
        defer { fixture.finish() }
        fixture.add(5)
        #expect(try !fixture.sync())
        #expect(
            fixture.board.state.value?.streams[.location]?.lastError?.failure.code == .network
        )
        #expect(server.connectionCount == 1)
    }

    /// A stop aborts a request at every stage; the timeout is an hour, and `finish` would wait for
    /// all of it.
    @Test(arguments: ["connect", "TLS", "answer", "drip", "body"])
    func stop_abandonsARequestWhereverItHangs(stage: String) throws {
        let full = stage == "connect" ? try FullBacklog() : nil
        let (reached, isOver) = (Locked(false), Locked(false))
        defer { isOver.update { $0 = true } }
        let server = try PlainServer { client in
            var block = [UInt8](repeating: 0, count: 4096)
            _ = recv(client, &block, block.count, 0)
            reached.update { $0 = true }
            switch stage {
            case "drip": Wire.drip(client, "HTTP/1.1 200 OK\r\nX-Slow: ", every: 10_000)
            // Accepts no more of the body than the kernel buffers.
            case "body": while !isOver.value { usleep(10_000) }
            default: Wire.waitForEnd(client)
            }
        }
        defer { server.close() }
        let port = full?.server.port ?? server.port
        let fixture = try UploadFixture(
            maxBatchBytes: 64 << 20,
            endpoint: "\(stage == "TLS" ? "https" : "http")://127.0.0.1:\(port)/api/ingest",
            timeout: .seconds(3600),
            change: { $0.compression = .none }
        ) { _ in .ok }
        if stage == "body" { fixture.addAudio(chunks: 16, frames: 500_000) } else { fixture.add(5) }
        let answer = Locked<Bool?>(nil)
        fixture.ask { done in answer.update { $0 = done } }
        try waitUntil("the request is under way") {
            let report = fixture.board.state.value
            return report?.streams.contains { $1.inFlight > 0 } == true
                && (full != nil || reached.value)
        }
        fixture.finish()
        #expect(answer.value == false)
        withExtendedLifetime(full) {}
    }

    /// A server with a limit answers before it has the body, and resets the rest of it.
    @Test func earlyTooLarge_isHeardThoughTheBodyWasNotTaken() throws {
        let isHalved = Locked(false)
        defer { isHalved.update { $0 = true } }
        let server = try PlainServer { client in
            var block = [UInt8](repeating: 0, count: 4096)
            _ = recv(client, &block, block.count, 0)
            Wire.send(client, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
            // A reset before the answer was read would be a network error.
            _ = eventually { isHalved.value }
            Wire.resetAtClose(client)
        }
        defer { server.close() }
        let fixture = try UploadFixture(
            maxBatchBytes: 64 << 20,
            endpoint: "http://127.0.0.1:\(server.port)/api/ingest",
            change: { $0.compression = .none }
        ) { _ in .ok }
        defer { fixture.finish() }
        fixture.addAudio(chunks: 12, frames: 500_000)
        fixture.ask { _ in }
        try waitUntil("the batch is halved") {
            try fixture.queue.flushed().nextReady(.audio).map { $0.records < 6 } ?? false
        }
    }

    /// A slow link is not a stall: the kernel sends the body long after libcurl has handed it over.
    @Test func slowReader_isWaitedForAsLongAsItReads() throws {
        let bytes = Locked(0)
        let server = try PlainServer { client in
            var size: Int32 = 64 << 10
            setsockopt(client, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
            var block = [UInt8](repeating: 0, count: 16 << 10)
            var head = ""
            var total = 0
            var length = Int.max
            while total < length {
                let count = recv(client, &block, block.count, 0)
                guard count > 0 else { return }
                total += count
                if length == Int.max {
                    head += String(decoding: block.prefix(count), as: UTF8.self)
                    if let start = head.range(of: "Content-Length: ") {
                        let digits = head[start.upperBound...].prefix { $0.isNumber }
                        length = Int(digits) ?? Int.max
                    }
                }
                bytes.update { $0 = total }
                usleep(40_000)
            }
            Wire.send(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        }
        defer { server.close() }
        let fixture = try UploadFixture(
            maxBatchBytes: 64 << 20,
            endpoint: "http://127.0.0.1:\(server.port)/api/ingest",
            timeout: .seconds(5),
            change: { $0.compression = .none }
        ) { _ in .ok }
        defer { fixture.finish() }
        fixture.addAudio(chunks: 3, frames: 500_000)
        // The request takes longer than the timeout, but always makes progress.
        #expect(try fixture.sync())
        #expect(bytes.value > 3_000_000)
        let audio = try fixture.queue.flushed().statistics().first { $0.stream == .audio }
        #expect(audio?.uploaded == 3)
    }

    private static let start = BootInstant(nanoseconds: 0)

    private func goesOn(_ steps: [(ProgressMonitor.Mark, Int)]) -> [Bool] {
        var watch = ProgressMonitor(limit: .seconds(30), now: Self.start)
        return steps.map { watch.goesOn($0, Self.start + .seconds($1)) }
    }

    @Test func progressMonitor_countsSentBytesAndResponseStart() {
        let goesOn = goesOn([
            (.init(given: 100, unsent: 100, answered: 0), 20),
            (.init(given: 100, unsent: 60, answered: 0), 45),
            (.init(given: 100, unsent: 0, answered: 0), 70),
            (.init(given: 100, unsent: 0, answered: 1), 95),
            // A little more of the answer does not restart the timeout.
            (.init(given: 100, unsent: 0, answered: 2), 120),
            (.init(given: 100, unsent: 0, answered: 3), 125),
        ])
        #expect(goesOn == [true, true, true, true, true, false])
    }

    @Test func progressMonitor_allowsASlowResponse_butNotForever() {
        // 20 kB every 25 s: half a megabyte in ten minutes.
        let steps = (1...40).map { (ProgressMonitor.Mark(answered: $0 * 20_000), $0 * 25) }
        let goesOn = goesOn(steps)
        #expect(goesOn.prefix(24).allSatisfy { $0 })
        #expect(goesOn.last == false)
    }
}
