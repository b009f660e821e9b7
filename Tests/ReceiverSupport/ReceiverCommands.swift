// Common requests of tests to a server: a batch, a token, a command.
import Foundation
package import Support
import Testing

extension ReceiverProcess {
    /// Runs `waypost-receiver` with this server's data.
    package func command(_ arguments: String...) throws -> Outcome { try command(arguments) }

    /// Runs `waypost-receiver` with this server's data.
    package func command(_ arguments: [String]) throws -> Outcome {
        try Process.run(Tree.program("waypost-receiver"), arguments + ["--data", folder])
    }

    package func request(_ head: String, _ body: [UInt8] = []) throws -> RawClient.Answer {
        let client = try RawClient(self)
        client.send(head)
        client.send(body)
        return try #require(client.answer())
    }

    /// Sends a batch of records; returns the status of its answer.
    package func send(
        _ token: String = "t",
        device: String = "d1",
        ids: [String] = [UUID().uuidString],
        padding: String = "",
        time: String = "2026-11-21T04:30:07.123Z"
    ) throws -> Int {
        let body = RawRequest.batch(ids, device: device, padding: padding, time: time)
        return try request(RawRequest.head(length: body.count, token: token), body).status
    }

    /// Sends a batch of a stream of `d1`: records with a time of day (`06:00:00`) and members.
    package func send(
        _ stream: String,
        on day: String,
        _ records: [(time: String, members: String)]
    ) throws {
        let lines = records.map {
            #"{"id":"\#(UUID().uuidString)","timestamp":"\#(day)T\#($0.time)Z",\#($0.members)}"#
        }
        let body = Array(
            """
            {"stream_name":"\(stream)","device_id":"d1","data":[\(lines.joined(separator: ","))],
            "batch_metadata":{"total_records":\(lines.count)}}
            """.utf8
        )
        #expect(try request(RawRequest.head(length: body.count), body).status == 200)
    }

    /// Sends a batch of a stream of `d1`: records with the second of the day and members.
    package func send(_ stream: String, on day: String, _ records: [(second: Int, members: String)])
        throws
    {
        let timed = records.map { (second, members) in
            let (hour, minute) = (second / 3600, second / 60 % 60)
            return (String(format: "%02d:%02d:%02d", hour, minute, second % 60), members)
        }
        try send(stream, on: day, timed)
    }

    /// Runs SQL on one of its databases; returns rows as Python prints them, and commits changes.
    @discardableResult
    package func sql(_ statement: String, in name: String = ".receiver.sqlite") throws -> String {
        let script =
            "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], uri=True); print(d.execute(sys.argv[2]).fetchall()); d.commit()"
        // Not created here: the receiver makes its databases.
        let place = "file:\(folder)/\(name)?mode=rw"
        let outcome = try Process.run("/usr/bin/python3", ["-c", script, place, statement])
        guard outcome.status == 0 else {
            throw NeverHappened(what: "\(statement): \(outcome.error)")
        }
        return outcome.output
    }

    /// Waits until a query gives `rows`; a database without its tables yet is asked again.
    package func waitUntil(
        _ statement: String,
        gives rows: String,
        in name: String = ".receiver.sqlite"
    ) throws {
        try Support.waitUntil("\(rows) from \(statement)") {
            (try? sql(statement, in: name)) == rows
        }
    }

    package func verify(_ token: String) throws -> Int {
        try request(
            "POST /api/device/verify HTTP/1.1\r\nHost: r\r\nX-Device-Token: \(token)\r\nContent-Length: 0\r\n\r\n"
        ).status
    }

    /// Enrols a device, with a new code if none is given; returns its token.
    @discardableResult
    package func enrol(_ device: String = "d1", code given: String? = nil) throws -> String {
        let code = try given ?? command("codes", "add").output.trimmingCharacters(in: .newlines)
        let body = #"{"code": "\#(code)", "device_id": "\#(device)"}"#
        let head =
            "POST /api/device/enroll HTTP/1.1\r\nHost: r\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        let answer = try request(head, Array(body.utf8))
        #expect(answer.status == 200)
        let reply = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
        return try #require((reply as? [String: Any])?["token"] as? String)
    }
}
