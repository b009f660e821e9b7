// What many tests ask of a receiver: a batch, a token, a command beside it.
import Foundation
package import Support
import Testing

extension ReceiverProcess {
    /// Runs `waypost-receiver` with the data of this one.
    package func command(_ arguments: String...) throws -> Outcome {
        try Process.run(Tree.program("waypost-receiver"), arguments + ["--data", folder])
    }

    package func request(_ head: String, _ body: [UInt8] = []) throws -> RawClient.Answer {
        let client = try RawClient(self)
        client.send(head)
        client.send(body)
        return try #require(client.answer())
    }

    /// A batch of records; the status of its answer.
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

    /// A batch of a stream of `d1`: records with a time of the day (`06:00:00`) and members.
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

    /// The same, with the second of the day.
    package func send(_ stream: String, on day: String, _ records: [(second: Int, members: String)])
        throws
    {
        let timed = records.map { (second, members) in
            let (hour, minute) = (second / 3600, second / 60 % 60)
            return (String(format: "%02d:%02d:%02d", hour, minute, second % 60), members)
        }
        try send(stream, on: day, timed)
    }

    /// Rows of one of its databases, as Python writes them; a change is committed.
    @discardableResult
    package func sql(_ statement: String, in name: String = ".receiver.sqlite") throws -> String {
        let script =
            "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); print(d.execute(sys.argv[2]).fetchall()); d.commit()"
        let path = "\(folder)/\(name)"
        let outcome = try Process.run("/usr/bin/python3", ["-c", script, path, statement])
        guard outcome.status == 0 else {
            throw NeverHappened(what: "\(statement): \(outcome.error)")
        }
        return outcome.output
    }

    package func verify(_ token: String) throws -> Int {
        try request(
            "POST /api/device/verify HTTP/1.1\r\nHost: r\r\nX-Device-Token: \(token)\r\nContent-Length: 0\r\n\r\n"
        ).status
    }

    /// The token that a device gets for a new code.
    package func enrol(_ device: String = "d1") throws -> String {
        let code = try command("codes", "add").output.trimmingCharacters(in: .newlines)
        let body = #"{"code": "\#(code)", "device_id": "\#(device)"}"#
        let head =
            "POST /api/device/enroll HTTP/1.1\r\nHost: r\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        let reply = try JSONSerialization.jsonObject(
            with: Data(try request(head, Array(body.utf8)).body.utf8)
        )
        return try #require((reply as? [String: Any])?["token"] as? String)
    }
}
