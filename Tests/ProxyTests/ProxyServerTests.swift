// The proxy's server with real sockets: limits, slow and silent clients, and the answers that they get.
import CLinux
import Foundation
import Host
import Records
import StatusBoard
import Support
import Testing

@testable import Proxy

/// A running proxy.
final class TestProxy {
    static let key = [UInt8](repeating: 7, count: 32)

    let port: UInt16
    let tap: AdvertisementTap
    let board = Publisher<ProxyReport>()
    let scanner = StateBox(ScannerState(.running, isActive: false))
    let server: ProxyServer
    let thread: StoppableThread

    init(_ limits: ProxyLimits = ProxyLimits(), bus: String = "unix:path=/nonexistent") throws {
        tap = try AdvertisementTap()
        let identity = ProxyIdentity(name: nil, area: nil, deviceID: "device", version: "1")
        let scanner = scanner
        let facts = ProxyFacts(
            identity,
            key: Self.key,
            adapter: { BluetoothAddress(value: 0xA1_B2C3_D4E5F6) },
            scanner: { scanner.value }
        )
        let (tap, board) = (tap, board)
        // Another test may take the port first.
        func opened() throws -> ProxyServer {
            try ProxyServer(
                facts,
                listen: HostPort(host: "127.0.0.1", port: freePort()),
                bus: bus,
                tap: tap,
                board: board,
                clock: SystemClock(),
                limits: limits
            )
        }
        let server = try (try? opened()) ?? (try? opened()) ?? opened()
        port = server.port
        self.server = server
        thread = try StoppableThread("proxy") { server.run(until: $0) }
    }

    deinit { thread.stop(by: SystemClock().now() + .seconds(5)) }

    var report: ProxyReport { board.state.value ?? ProxyReport() }

    func client(receiveBuffer: Int32? = nil) throws -> TestClient {
        let client = try TestClient(port: port, receiveBuffer: receiveBuffer)
        let refusal = try client.shakeHands(key: Self.key)
        #expect(refusal == nil)
        return client
    }

    /// Passes advertisements whose data are the numbers of `range`.
    func pass(_ range: Range<Int>, size: Int = 4) {
        for number in range {
            var data = (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
            data += [UInt8](repeating: 0, count: size - 4)
            tap.pass(
                RawAdvertisement(
                    address: BluetoothAddress(value: UInt64(number)),
                    isRandomAddress: number % 2 == 0,
                    rssi: -40,
                    data: data
                )
            )
        }
    }
}

private func number(_ data: [UInt8]) -> Int {
    data.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
}

@Suite struct ProxyServerTests {
    @Test func advertisements_arriveInOrder_sixteenAtMost() throws {
        let proxy = try TestProxy()
        #expect(!proxy.tap.isOpen)
        let client = try proxy.client()
        #expect(try client.subscribe() == [8, 2])
        #expect(proxy.tap.isOpen)
        proxy.pass(0..<1000)
        var numbers: [Int] = []
        while numbers.count < 1000 {
            let batch = try client.advertisements()
            #expect((1...16).contains(batch.count))
            numbers += batch.map(number)
        }
        #expect(numbers == Array(0..<1000))
        #expect(eventually { proxy.report.sent == 1000 })
        #expect(proxy.report.dropped == 0)
        try client.send(MessageType.unsubscribeAdvertisements)
        try client.send(MessageType.ping)
        _ = try client.message(MessageType.pingAnswer)
        #expect(!proxy.tap.isOpen)
    }

    /// A slow client loses the oldest; another one beside it loses none.
    @Test func slowClient_losesTheOldest_andDelaysNobody() throws {
        let proxy = try TestProxy()
        let slow = try proxy.client(receiveBuffer: 4096)
        _ = try slow.subscribe()
        let quick = try proxy.client()
        _ = try quick.subscribe()
        let (rounds, size) = (20, 1000)
        for round in 0..<rounds {
            proxy.pass(round * size..<(round + 1) * size, size: 200)
            var got = 0
            while got < size {
                let batch = try quick.advertisements()
                #expect(number(batch[0]) == round * size + got)
                got += batch.count
            }
        }
        // Figures are published in the thread's next turn, which the health timer causes.
        #expect(
            eventually {
                proxy.server.ask()
                return proxy.report.dropped > 10_000
            }
        )
        var last = -1
        while last < rounds * size - 1 {
            for data in try slow.advertisements() {
                #expect(number(data) > last)
                last = number(data)
            }
        }
        #expect(proxy.report.clients == 2)
        #expect(
            eventually {
                proxy.server.ask()
                return proxy.report.sent + proxy.report.dropped == 2 * rounds * size
            }
        )
    }

    @Test func fifthClient_isRefused_untilOneLeaves() throws {
        let proxy = try TestProxy()
        var clients = try (0..<4).map { _ in try proxy.client() }
        let fifth = try TestClient(port: proxy.port)
        let refusal = try fifth.shakeHands(key: TestProxy.key) {
            for client in clients {
                _ = try client.message(MessageType.ping)
                try client.send(MessageType.pingAnswer)
            }
        }
        #expect(refusal == "Too many clients")
        #expect(fifth.isClosed())
        try clients[0].send(MessageType.disconnect)
        _ = try clients[0].message(MessageType.disconnectAnswer)
        #expect(clients[0].isClosed())
        clients.removeFirst()
        #expect(eventually { proxy.report.clients == 3 })
        clients.append(try proxy.client())
        #expect(eventually { proxy.report.clients == 4 })
    }

    /// Four slots of a machine that lost its power: without FIN, each would be held for 150 s.
    @Test func clientThatIsSilentForLongest_givesWayToAFifth() throws {
        var limits = ProxyLimits()
        limits.answer = .milliseconds(200)
        let proxy = try TestProxy(limits)
        let clients = try (0..<4).map { _ in try proxy.client() }
        try clients[0].send(MessageType.ping)
        _ = try clients[0].message(MessageType.pingAnswer)
        let fifth = try proxy.client()
        _ = try clients[1].message(MessageType.ping)
        #expect(clients[1].isClosed())
        for client in [clients[0], clients[2], clients[3], fifth] {
            try client.send(MessageType.ping)
            _ = try client.message(MessageType.pingAnswer)
        }
        #expect(eventually { proxy.report.clients == 4 })
    }

    /// A client that needs a while for its packets, and a flood from one other address.
    @Test func floodOfConnections_keepsOutItsOwnAddressOnly() throws {
        let proxy = try TestProxy()
        let slow = try TestClient(port: proxy.port, host: 2)
        var flood: [TestClient] = []
        let refusal = try slow.shakeHands(key: TestProxy.key) {
            flood = try (0..<40).map { _ in try TestClient(port: proxy.port) }
            #expect(flood[0].isClosed())
        }
        #expect(refusal == nil)
        try slow.send(MessageType.ping)
        _ = try slow.message(MessageType.pingAnswer)
        let message = try #require(proxy.report.lastFault?.failure.message)
        #expect(message == "127.0.0.1: too many unfinished handshakes")
    }

    /// Connections that never finish a handshake take no place from clients that have the key.
    @Test func connectionsWithoutHandshake_keepNobodyOut() throws {
        let proxy = try TestProxy()
        let visitors = try (0..<30).map { _ in try TestClient(port: proxy.port) }
        #expect(visitors[0].isClosed())
        let client = try proxy.client()
        try client.send(MessageType.ping)
        _ = try client.message(MessageType.pingAnswer)
        #expect(proxy.report.clients == 1)
    }

    /// The first message of a handshake proves nothing: it may be a recorded one.
    @Test func handshakesWithoutHello_keepNobodyOut() throws {
        let proxy = try TestProxy()
        let recorded = try (0..<4).map { _ in try TestClient(port: proxy.port) }
        for client in recorded {
            #expect(try client.shakeHands(key: TestProxy.key, then: false) == nil)
        }
        let client = try proxy.client()
        try client.send(MessageType.ping)
        _ = try client.message(MessageType.pingAnswer)
        #expect(proxy.report.clients == 1)
    }

    @Test func unfinishedHandshake_isEnded() throws {
        var limits = ProxyLimits()
        limits.handshake = .milliseconds(200)
        let proxy = try TestProxy(limits)
        let silent = try TestClient(port: proxy.port)
        #expect(silent.isClosed())
        let half = try TestClient(port: proxy.port)
        half.send(frame: [])
        #expect(half.isClosed())
        #expect(eventually { proxy.report.faults == 2 })
        let message = try #require(proxy.report.lastFault?.failure.message)
        #expect(message == "127.0.0.1: a client did not finish its handshake")
    }

    /// Without FIN, as after a power cut of the client's machine.
    @Test func silentClient_isPinged_andThenEnded() throws {
        var limits = ProxyLimits()
        (limits.idle, limits.silence) = (.milliseconds(200), .milliseconds(600))
        let proxy = try TestProxy(limits)
        let answering = try proxy.client()
        let silent = try proxy.client()
        for _ in 0..<5 {
            _ = try answering.message(MessageType.ping)
            try answering.send(MessageType.pingAnswer)
        }
        _ = try silent.message(MessageType.ping)
        #expect(silent.isClosed())
        #expect(eventually { proxy.report.faults >= 1 })
        #expect(proxy.report.lastFault?.failure.message == "127.0.0.1: a client did not answer")
    }

    /// The ping shows that the time for a handshake is over.
    @Test func clientThatLeavesInOrder_isNoError() throws {
        var limits = ProxyLimits()
        (limits.handshake, limits.idle) = (.milliseconds(200), .milliseconds(400))
        let proxy = try TestProxy(limits)
        let client = try proxy.client()
        _ = try client.message(MessageType.ping)
        try client.send(MessageType.pingAnswer)
        try client.send(MessageType.disconnect)
        _ = try client.message(MessageType.disconnectAnswer)
        #expect(client.isClosed())
        #expect(eventually { proxy.report.clients == 0 })
        #expect(proxy.report.faults == 0)
    }

    @Test func wrongKey_andPlainText_getTheirAnswers() throws {
        let proxy = try TestProxy()
        let wrong = try TestClient(port: proxy.port)
        let refusal = try wrong.shakeHands(key: [UInt8](repeating: 8, count: 32))
        #expect(refusal == "Handshake MAC failure")
        #expect(wrong.isClosed())
        let plain = try TestClient(port: proxy.port)
        plain.send(raw: [0, 0, 1])
        #expect(try plain.frame() == [1] + Array("Bad indicator byte".utf8))
        #expect(plain.isClosed())
        #expect(eventually { proxy.report.faults == 2 })
        #expect(proxy.report.clients == 0)
    }

    @Test func requestBeforeHello_orBrokenFrame_endsTheSession() throws {
        let proxy = try TestProxy()
        let early = try TestClient(port: proxy.port)
        _ = try early.shakeHands(key: TestProxy.key, then: false)
        try early.send(MessageType.deviceInfo)
        #expect(early.isClosed())
        let broken = try proxy.client()
        broken.send(frame: [UInt8](repeating: 1, count: 40))
        #expect(broken.isClosed())
        let large = try proxy.client()
        large.send(raw: [1, 255, 255])
        #expect(large.isClosed())
        #expect(eventually { proxy.report.faults == 3 })
    }

    /// A change reaches subscribers with the next health tick; a client cannot change the mode.
    @Test func scannerState_followsTheSource() throws {
        let proxy = try TestProxy()
        let client = try proxy.client()
        #expect(try client.subscribe() == [8, 2])
        try client.send(MessageType.setScannerMode, [8, 1])
        #expect(try client.message(MessageType.scannerState) == [8, 2])
        proxy.scanner.update { $0 = ScannerState(.failed, isActive: true) }
        proxy.server.ask()
        #expect(try client.message(MessageType.scannerState) == [8, 3, 16, 1, 24, 1])
    }

    @Test func stop_saysGoodbye() throws {
        let proxy = try TestProxy()
        let client = try proxy.client()
        #expect(proxy.thread.stop(by: SystemClock().now() + .seconds(5)))
        _ = try client.message(MessageType.disconnect)
        #expect(client.isClosed())
    }

    @Test func takenPort_isReported() throws {
        let proxy = try TestProxy()
        do {
            _ = try ProxyServer(
                proxy.server.facts,
                listen: HostPort(host: "127.0.0.1", port: proxy.port),
                bus: "unix:path=/nonexistent",
                tap: proxy.tap,
                board: proxy.board,
                clock: SystemClock()
            )
            Issue.record("it listens on a port that another one has")
        } catch let failure as Failure {
            #expect(failure.message.contains("127.0.0.1:\(proxy.port): Address already in use"))
        }
    }
}
