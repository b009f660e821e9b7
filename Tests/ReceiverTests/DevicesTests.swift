// The `devices` command: listing and revoking, with a running server.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct DevicesTests {
    private func devices(_ receiver: ReceiverProcess) throws -> [[String: Any]] {
        let outcome = try receiver.command("devices", "--json")
        #expect(outcome.status == 0, "\(outcome.error)")
        let object = try JSONSerialization.jsonObject(with: outcome.data) as? [String: Any]
        return try #require(object?["devices"] as? [[String: Any]])
    }

    @Test func list_showsEachDeviceThatEnrolledOrSent() throws {
        let folder = TemporaryFolder()
        let list = try folder.write("listed-token\n", to: "tokens")
        let receiver = try ReceiverProcess(["--tokens", list])
        #expect(try devices(receiver).isEmpty)
        let token = try receiver.enrol()
        _ = try receiver.enrol("d2")
        #expect(try receiver.send(token, ids: ["a", "b"]) == 200)
        #expect(try receiver.send(token, ids: ["b", "c"]) == 200)
        #expect(try receiver.send("listed-token", device: "d3") == 200)
        let found = try devices(receiver)
        #expect(found.map { $0["device_id"] as? String } == ["d1", "d2", "d3"])
        #expect(found.map { $0["token"] as? String } == ["valid", "valid", "none"])
        let streams = found[0]["streams"] as? [String: [String: Any]]
        #expect(streams?["places"]?["records"] as? Int == 3)
        #expect(streams?["places"]?["batches"] as? Int == 2)
        for key in ["first_seen", "last_seen", "enrolled_at"] {
            #expect((found[0][key] as? String)?.hasSuffix("Z") == true, "\(key)")
        }
        #expect(found[1]["last_seen"] == nil)
        #expect(found[2]["enrolled_at"] == nil)
        let table = try receiver.command("devices").output.split(separator: "\n")
        #expect(table.count == 4)
        #expect(table[1].hasPrefix("d1      valid  20"))
        #expect(table[1].hasSuffix("  3        places"))
    }

    @Test func revokedToken_isRejectedAtOnce_untilANewCode() throws {
        let receiver = try ReceiverProcess()
        let (token, other) = (try receiver.enrol(), try receiver.enrol("d2"))
        #expect(try receiver.send(token) == 200)
        #expect(try receiver.command("devices", "revoke", "d1").status == 0)
        #expect(try receiver.send(token) == 401)
        #expect(try receiver.verify(token) == 401)
        #expect(try receiver.send(other, device: "d2") == 200)
        #expect(try devices(receiver)[0]["token"] as? String == "revoked")
        #expect(try devices(receiver)[0]["revoked_at"] != nil)
        receiver.kill()
        try receiver.start()
        #expect(try receiver.send(token) == 401)
        let new = try receiver.enrol()
        #expect(try receiver.send(new) == 200)
        #expect(try receiver.send(token) == 401)
        #expect(try devices(receiver)[0]["token"] as? String == "valid")
    }

    @Test(arguments: [false, true])
    func tokenThatEndsWithinAnUpload_isRefused(isReplaced: Bool) throws {
        let receiver = try ReceiverProcess()
        let (token, body) = (try receiver.enrol(), RawRequest.batch([UUID().uuidString]))
        let client = try RawClient(receiver)
        client.send(RawRequest.head(length: body.count, token: token))
        client.send(Array(body.dropLast()))
        #expect(try receiver.send(token) == 200)
        if isReplaced {
            let code = try receiver.command("codes", "add", "--device", "d1", "--replace").output
            _ = try receiver.enrol(code: code.trimmingCharacters(in: .newlines))
        } else {
            #expect(try receiver.command("devices", "revoke", "d1").status == 0)
        }
        client.send(Array(body.suffix(1)))
        #expect(client.answer()?.status == 401)
    }

    /// Any token of it is refused: a listed one for this device, or one that others share.
    @Test func revokedDevice_isRefusedWithATokenOfTheListToo() throws {
        let folder = TemporaryFolder()
        let list = try folder.write("shared-token\nown-token d1\n", to: "tokens")
        let receiver = try ReceiverProcess(["--tokens", list])
        #expect(try receiver.send("own-token") == 200)
        #expect(try receiver.command("devices", "revoke", "d1").status == 0)
        #expect(try receiver.send("own-token") == 401)
        #expect(try receiver.verify("own-token") == 401)
        #expect(try receiver.send("shared-token") == 401)
        #expect(try receiver.send("shared-token", device: "d2") == 200)
    }

    @Test func deviceThatIsNotKnown_isAnError() throws {
        let receiver = try ReceiverProcess()
        let outcome = try receiver.command("devices", "revoke", "d9\u{1b}[1m")
        #expect(outcome.status == 1)
        #expect(outcome.error == "waypost-receiver: there is no device d9?[1m\n")
        #expect(try receiver.command("devices", "revoke").status == 64)
        let nowhere = receiver.folder + "/nowhere"
        let missing = try Process.run(
            Tree.program("waypost-receiver"),
            ["devices", "--data", nowhere]
        )
        #expect(missing.status == 1)
        #expect(missing.error.contains("there is no folder"))
        #expect(!FileManager.default.fileExists(atPath: nowhere))
    }
}
