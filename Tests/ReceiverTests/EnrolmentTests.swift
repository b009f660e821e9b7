// Enrolment by code, with the real program: its commands and its running server.
import Foundation
import FoundationNetworking
import ReceiverSupport
import Support
import Testing

@Suite struct EnrolmentTests {
    /// Returns a new code as printed.
    private func newCode(_ receiver: ReceiverProcess) throws -> String {
        let outcome = try receiver.command("codes", "add")
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.output.trimmingCharacters(in: .newlines)
    }

    /// Another folder than the receiver's has no codes, and a code made there is useless.
    @Test func wrongFolder_isNamed_andNotMadeByAQuestion() throws {
        let folder = TemporaryFolder()
        let (program, missing) = (Tree.program("waypost-receiver"), folder.path + "/none")
        let add = [["codes", "add"], ["viewers", "add", "ada"]]
        for words in [["codes", "list"], ["codes", "drop", "1"], ["--summary"]] + add {
            let asked = try Process.run(program, words + ["--data", missing])
            #expect(asked.status == 1)
            #expect(asked.error.contains("there is no folder \(missing)"), "\(asked.error)")
        }
        #expect(!FileManager.default.fileExists(atPath: missing))
        for words in [["codes", "list"], ["devices"]] + add {
            let asked = try Process.run(program, words + ["--data", folder.path])
            #expect(asked.status == 1)
            #expect(asked.error.contains("is not the data folder of a server"), "\(asked.error)")
        }
        #expect(try folder.files.isEmpty)
    }

    /// A code is shown once, so a failed print has to be reported.
    @Test func codeThatCannotBePrinted_isAFailure() throws {
        let receiver = try ReceiverProcess()
        let program = Tree.program("waypost-receiver")
        let command = "\(program) codes add --data \(receiver.folder) > /dev/full"
        let full = try Process.run("/bin/sh", ["-c", command])
        #expect(full.status == 1)
        #expect(full.error.contains("standard output: No space left on device"))
    }

    private static func post(
        _ base: URL,
        _ path: String,
        _ body: String,
        token: String? = nil,
        key: String = UUID().uuidString
    ) async throws -> (status: Int, reply: [String: Any], wait: Int?) {
        var request = URLRequest(url: base.appendingPathComponent(path))
        request.httpMethod = "POST"
        request.httpBody = Data(body.utf8)
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.setValue("\"\(key)\"", forHTTPHeaderField: "Idempotency-Key")
        if let token { request.setValue(token, forHTTPHeaderField: "X-Device-Token") }
        let (data, response) = try await URLSession.shared.data(for: request)
        let http = response as? HTTPURLResponse
        let reply = try JSONSerialization.jsonObject(with: data) as? [String: Any]
        let wait = http?.value(forHTTPHeaderField: "Retry-After").flatMap { Int($0) }
        return (http?.statusCode ?? 0, reply ?? [:], wait)
    }

    private func enrol(
        _ receiver: ReceiverProcess,
        _ code: String,
        _ device: String = "d1",
        wants token: String? = nil
    ) async throws -> (status: Int, token: String?) {
        let wish = token.map { #", "token": "\#($0)""# } ?? ""
        let body = #"{"code": "\#(code)", "device_id": "\#(device)"\#(wish)}"#
        let answer = try await Self.post(receiver.base, "api/device/enroll", body)
        return (answer.status, answer.reply["token"] as? String)
    }

    private func ingest(
        _ receiver: ReceiverProcess,
        _ token: String,
        device: String
    ) async throws -> Int {
        let body = """
            {"stream_name": "places", "device_id": "\(device)", "data": [],
            "batch_metadata": {"total_records": 0}}
            """
        return try await Self.post(receiver.base, "api/ingest", body, token: token).status
    }

    @Test func code_isGoodOnce_andItsTokenForItsDeviceAlone() async throws {
        let receiver = try ReceiverProcess()
        let code = try newCode(receiver)
        // As dictated: in lower case, with a letter for a similar digit.
        let typed = code.lowercased().replacingOccurrences(of: "0", with: "o")
            .replacingOccurrences(of: "-", with: " ")
        let first = try await enrol(receiver, typed)
        #expect(first.status == 200)
        let token = try #require(first.token)
        #expect(try await enrol(receiver, code).status == 403)
        #expect(try await enrol(receiver, code, "d2").status == 403)
        #expect(try await ingest(receiver, token, device: "d1") == 200)
        #expect(try await ingest(receiver, token, device: "d2") == 403)
        #expect(try receiver.command("codes", "list").output == "1  used by d1\n")
    }

    @Test func codeMadeForADevice_enrolsThatDeviceOnly() async throws {
        let receiver = try ReceiverProcess()
        let made = try receiver.command("codes", "add", "--device", "d1")
        #expect(made.status == 0)
        #expect(made.error.contains("for d1"))
        let code = made.output.trimmingCharacters(in: .newlines)
        #expect(try receiver.command("codes", "list").output.hasSuffix(" for d1\n"))
        #expect(try await enrol(receiver, code, "d2").status == 403)
        #expect(try await enrol(receiver, code).status == 200)
        #expect(try receiver.command("codes", "add", "--device", "../d1").status == 64)
    }

    /// A stolen code cannot take over an enrolled device.
    @Test func reenrolment_needsReplacingCode_andRevokesOldToken() async throws {
        let receiver = try ReceiverProcess()
        let old = try #require(try await enrol(receiver, newCode(receiver)).token)
        let found = try newCode(receiver)
        let body = #"{"code": "\#(found)", "device_id": "d1"}"#
        let refused = try await Self.post(receiver.base, "api/device/enroll", body)
        #expect(refused.status == 403)
        #expect("\(refused.reply)".contains("codes add --device d1 --replace"))
        #expect(try await ingest(receiver, old, device: "d1") == 200)
        // The code is not used up.
        #expect(try await enrol(receiver, found, "d2").status == 200)
        let without = try receiver.command("codes", "add", "--device", "d1")
        #expect(without.status == 1)
        #expect(without.error.contains("d1 is already enrolled; add --replace"))
        let made = try receiver.command("codes", "add", "--device", "d1", "--replace").output
        let code = made.trimmingCharacters(in: .newlines)
        #expect(
            try receiver.command("codes", "list").output.contains(" for d1, replaces its token")
        )
        #expect(try await enrol(receiver, code, "d2").status == 403)
        let new = try #require(try await enrol(receiver, code).token)
        #expect(try await ingest(receiver, old, device: "d1") == 401)
        #expect(try await ingest(receiver, new, device: "d1") == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        #expect(try browser.get("/device/d1").body.contains("Token replaced"))
        let list = try receiver.command("devices", "--json").output
        #expect(list.contains(#""replaced_at":"20"#))
    }

    /// A device with a listed token counts as enrolled; a revoked one does not.
    @Test func deviceOfTheList_isEnrolled_untilItIsRevoked() async throws {
        let folder = TemporaryFolder()
        let list = try folder.write("list-1 d1\nlist-2 d2\n", to: "tokens")
        let receiver = try ReceiverProcess(["--tokens", list])
        #expect(try await enrol(receiver, newCode(receiver)).status == 403)
        let code = try receiver.command("codes", "add", "--replace").output.trimmingCharacters(
            in: .newlines
        )
        let new = try #require(try await enrol(receiver, code).token)
        #expect(try await ingest(receiver, "list-1", device: "d1") == 401)
        #expect(try await ingest(receiver, new, device: "d1") == 200)
        #expect(try await ingest(receiver, "list-2", device: "d2") == 200)
        #expect(try receiver.command("devices", "revoke", "d2").status == 0)
        #expect(try await enrol(receiver, newCode(receiver), "d2").status == 200)
    }

    /// The answer was lost, and only the device knows the token.
    @Test func deviceMadeToken_isGivenAgain_forTheSameCode() async throws {
        let receiver = try ReceiverProcess()
        let (code, other) = (try newCode(receiver), try newCode(receiver))
        let mine = String(repeating: "ab_-", count: 8)
        #expect(try await enrol(receiver, code, wants: "short").status == 400)
        #expect(try await enrol(receiver, code, wants: mine).token == mine)
        receiver.kill()
        try receiver.start()
        #expect(try await enrol(receiver, code, wants: mine).token == mine)
        #expect(try await ingest(receiver, mine, device: "d1") == 200)
        #expect(try await enrol(receiver, code).status == 403)
        #expect(try await enrol(receiver, code, wants: mine + "x").status == 403)
        // Neither another device nor another code gets it.
        #expect(try await enrol(receiver, code, "d2", wants: mine).status == 403)
        #expect(try await enrol(receiver, other, "d2", wants: mine).status == 403)
        #expect(try receiver.command("codes", "list").output.hasPrefix("1  used by d1\n2  open"))
        // A revoked token stays revoked.
        #expect(
            try Process.run(
                Tree.program("waypost-receiver"),
                ["devices", "revoke", "d1", "--data", receiver.folder]
            ).status == 0
        )
        #expect(try await enrol(receiver, code, wants: mine).status == 403)
        #expect(try await enrol(receiver, other, wants: mine + "new").status == 200)
    }

    @Test func codeAndToken_outliveAKill_andAreKeptAsHashes() async throws {
        let receiver = try ReceiverProcess()
        let (used, open) = (try newCode(receiver), try newCode(receiver))
        let token = try #require(try await enrol(receiver, used).token)
        receiver.kill()
        let files = try FileManager.default.contentsOfDirectory(atPath: receiver.folder)
        for file in files {
            let data = FileManager.default.contents(atPath: "\(receiver.folder)/\(file)") ?? Data()
            for secret in [used, open, token] {
                #expect(data.range(of: Data(secret.utf8)) == nil, "\(file)")
                let plain = secret.replacingOccurrences(of: "-", with: "")
                #expect(data.range(of: Data(plain.utf8)) == nil, "\(file)")
            }
        }
        let path = receiver.folder + "/.receiver-enrolments.sqlite"
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        try receiver.start()
        #expect(try await ingest(receiver, token, device: "d1") == 200)
        #expect(try await enrol(receiver, used).status == 403)
        #expect(try await enrol(receiver, open, "d2").status == 200)
    }

    @Test func codeOfSeveralAtOnce_isGivenToOne() async throws {
        let receiver = try ReceiverProcess()
        let (code, base) = (try newCode(receiver), receiver.base)
        let given = try await withThrowingTaskGroup(of: Int.self) { group in
            for device in 0..<8 {
                group.addTask {
                    let body = #"{"code": "\#(code)", "device_id": "d\#(device)"}"#
                    return try await Self.post(base, "api/device/enroll", body).status
                }
            }
            return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(given.filter { $0 == 200 }.count == 1)
        #expect(given.filter { $0 == 403 }.count == 7)
    }

    @Test func codeThatIsDroppedOrTooOld_isNoneAnyMore() async throws {
        let receiver = try ReceiverProcess()
        let (dropped, old) = (try newCode(receiver), try newCode(receiver))
        #expect(try receiver.command("codes", "drop", "1").status == 0)
        #expect(try receiver.command("codes", "drop", "1").status == 1)
        try receiver.sql("UPDATE codes SET expires = 1", in: ".receiver-enrolments.sqlite")
        #expect(try receiver.command("codes", "list").output == "2  expired on 1970-01-01\n")
        #expect(try await enrol(receiver, dropped).status == 403)
        #expect(try await enrol(receiver, old).status == 403)
    }

    @Test func guesses_areRateLimited() async throws {
        let receiver = try ReceiverProcess()
        _ = try newCode(receiver)
        let base = receiver.base
        let body = #"{"code": "0000-0000-0000-0000", "device_id": "d1"}"#
        // All at once; sequentially, one per six seconds would be allowed.
        let answers = try await withThrowingTaskGroup(of: (Int, Int?).self) { group in
            for _ in 0..<40 {
                group.addTask {
                    let answer = try await Self.post(base, "api/device/enroll", body)
                    return (answer.status, answer.wait)
                }
            }
            return try await group.reduce(into: [(Int, Int?)]()) { $0.append($1) }
        }
        let reported = answers.filter { $0.0 == 429 }
        #expect(!reported.isEmpty)
        #expect(reported.allSatisfy { (1...60).contains($0.1 ?? 0) })
        #expect(answers.filter { $0.0 == 403 }.count == 40 - reported.count)
        // A device at the same address can still enrol.
        #expect(try await enrol(receiver, try newCode(receiver), "d2").status == 200)
        // This route does not help to guess tokens.
        #expect(try await ingest(receiver, "x", device: "d1") == 401)
    }

    @Test func goodCodeForADeviceThatIsEnrolled_isNotAGuess() async throws {
        let receiver = try ReceiverProcess()
        #expect(try await enrol(receiver, try newCode(receiver)).status == 200)
        let code = try newCode(receiver)
        for _ in 0..<12 { #expect(try await enrol(receiver, code).status == 403) }
        #expect(try await enrol(receiver, code, "d2").status == 200)
        #expect(try await enrol(receiver, "0000-0000-0000-0000").status == 403)
    }

    @Test func manyDevicesBehindOneAddress_mayEnrolAtOnce() async throws {
        let receiver = try ReceiverProcess()
        for number in 0..<15 {
            #expect(try await enrol(receiver, try newCode(receiver), "d\(number)").status == 200)
        }
    }

    @Test func receiverWithoutTokens_isOpenUntilTheFirstCode() async throws {
        let receiver = try ReceiverProcess()
        #expect(try await ingest(receiver, "any", device: "d1") == 200)
        let code = try newCode(receiver)
        #expect(try await ingest(receiver, "any", device: "d1") == 401)
        let token = try #require(try await enrol(receiver, code).token)
        #expect(try await ingest(receiver, token, device: "d1") == 200)
    }

    private static let long = String(repeating: "A", count: 5000)

    // Not inside the macro's argument: Swift 6.0 crashes on an interpolation there.
    private static let bodies = [
        ("{}", 400), ("[]", 400), ("", 400), (#"{"code": 5, "device_id": "d"}"#, 400),
        (#"{"code": "x", "device_id": "../d"}"#, 400), (#"{"code": "x", "device_id": "d"}"#, 403),
        (#"{"code": ""# + long + #"", "device_id": "d"}"#, 413),
    ]

    @Test(arguments: bodies)
    func bodyThatIsNone_isRefused(_ body: String, _ status: Int) async throws {
        let receiver = try ReceiverProcess()
        let answer = try await Self.post(receiver.base, "api/device/enroll", body)
        #expect(answer.status == status)
    }

    /// A token may contain any header character.
    @Test func tokenWithAHash_isWhole() async throws {
        let folder = TemporaryFolder()
        let list = try folder.write("a#b d1 # the first\n# nothing\n#c d2\n", to: "tokens")
        let receiver = try ReceiverProcess(["--tokens", list])
        #expect(try await ingest(receiver, "a#b", device: "d1") == 200)
        #expect(try await ingest(receiver, "a", device: "d1") == 401)
        #expect(try await ingest(receiver, "#c", device: "d2") == 401)
    }
}
