// What many tests ask of a receiver: a batch, a token, a command beside it.
import Foundation
import Support
import Testing

extension ReceiverProcess {
    /// Runs `waypost-receiver` with the data of this one.
    func command(_ arguments: String...) throws -> Outcome {
        try Process.run(Tree.program("waypost-receiver"), arguments + ["--data", folder])
    }

    func request(_ head: String, _ body: [UInt8] = []) throws -> RawClient.Answer {
        let client = try RawClient(self)
        client.send(head)
        client.send(body)
        return try #require(client.answer())
    }

    /// A batch of records; the status of its answer.
    func send(
        _ token: String = "t",
        device: String = "d1",
        ids: [String] = [UUID().uuidString],
        padding: String = "",
        time: String = "2026-11-21T04:30:07.123Z"
    ) throws -> Int {
        let body = RawRequest.batch(ids, device: device, padding: padding, time: time)
        return try request(RawRequest.head(length: body.count, token: token), body).status
    }

    func verify(_ token: String) throws -> Int {
        try request(
            "POST /api/device/verify HTTP/1.1\r\nHost: r\r\nX-Device-Token: \(token)\r\nContent-Length: 0\r\n\r\n"
        ).status
    }

    /// The token that a device gets for a new code.
    func enrol(_ device: String = "d1") throws -> String {
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
