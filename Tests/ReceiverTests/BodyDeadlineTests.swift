// The time limits of a body, tested on the HTTP side alone.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerArchive
@testable import ServerBase
@testable import ServerWeb

@Suite struct BodyDeadlineTests {
    private struct Counter: HTTPApplication {
        let spoolFolder = "/tmp"

        func plan(_ head: RequestHead) -> RequestPlan { .body(limit: 1 << 20, isKnown: true) }

        func answer(_ head: RequestHead, _ body: Spool) -> HTTPAnswer {
            HTTPAnswer(200, ["count": body.count])
        }
    }

    /// The deadline extends with each byte: a slow line is not an attack.
    @Test func slowBody_isAccepted_longAfterTheFirstDeadline() throws {
        let (socket, port) = listening(backlog: 8)
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
        var bounds = HTTPBounds()
        (bounds.patience, bounds.strangersPatience) = (2, 2)
        let daemon = try HTTPDaemon(listener: socket, bounds: bounds, application: Counter())
        let client = try RawClient(port: port)
        let (parts, part) = (50, 600)
        client.send("POST / HTTP/1.1\r\nHost: r\r\nContent-Length: \(parts * part)\r\n\r\n")
        for _ in 0..<parts {
            client.send([UInt8](repeating: 32, count: part))
            usleep(100_000)
        }
        #expect(client.answer()?.body.contains("30000") == true)
        daemon.windDown()
    }

    /// Fast bytes extend the deadline, but not by hours of a nearly idle connection.
    @Test func bodyThatStalls_isGivenUp_howeverMuchCameBefore() throws {
        let (socket, port) = listening(backlog: 8)
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
        var bounds = HTTPBounds()
        (bounds.patience, bounds.strangersPatience, bounds.longestWait) = (2, 2, 2)
        let daemon = try HTTPDaemon(listener: socket, bounds: bounds, application: Counter())
        let client = try RawClient(port: port)
        client.send("POST / HTTP/1.1\r\nHost: r\r\nContent-Length: 1000000\r\n\r\n")
        client.send([UInt8](repeating: 32, count: 500_000))
        let start = ContinuousClock.now
        try waitUntil("the end of the connection") {
            usleep(100_000)
            return !client.send([32]) || client.hasNews()
        }
        // Not a refusal at once, and no answer to a whole body.
        #expect(ContinuousClock.now - start > .milliseconds(1500))
        #expect(client.answer()?.status != 200)
        daemon.windDown()
    }

    /// A non-linear cost by mistake, or a slow machine, cannot block all others.
    @Test func batchThatTakesTooLong_isToBeSplit() throws {
        let list = Array(repeating: "1", count: 100_000).joined(separator: ",")
        let bodies = [
            RawRequest.batch(["a"], padding: #","list":[\#(list)]"#),
            RawRequest.batch(
                ["a"],
                padding: #","text":"\#(String(repeating: "a", count: 2 << 20))""#
            ),
        ]
        for body in bodies {
            try body.withUnsafeBytes { bytes in
                let view = ByteView(bytes, isMapped: false)
                let count = try IncomingBatch(checking: view).count
                #expect(count == 1)
                #expect(
                    status { _ = try IncomingBatch(checking: view, limit: WorkLimit(seconds: 0)) }
                        == 413
                )
            }
            let wire = Spool(folder: "/tmp", memory: 1 << 20)
            try gzip(Data(body)).withUnsafeBytes(wire.append)
            let wasted = status {
                let limit = WorkLimit(seconds: 0)
                _ = try Inflater.inflate(wire, encoding: "gzip", folder: "/tmp", limit: limit)
            }
            #expect(wasted == 413)
        }
    }

    private func status(_ body: () throws -> Void) -> Int? {
        do { try body() } catch { return (error as? HTTPError)?.status }
        return nil
    }
}
