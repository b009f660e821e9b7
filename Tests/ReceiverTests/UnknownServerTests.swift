// Clients without a good token get very little.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerWeb

@Suite struct StrangerTests {
    private let folder = TemporaryFolder()

    /// Too long to guess.
    private static let long = String(repeating: "x7", count: 16)

    /// A receiver with a token list that contains "good".
    private func closed(_ arguments: [String] = []) throws -> ReceiverProcess {
        let file = try folder.write("good\nother\n\(Self.long)\n", to: "tokens", mode: 0o600)
        return try ReceiverProcess(["--tokens", file] + arguments)
    }

    // MARK: Bodies

    /// The answer does not wait for the body.
    @Test func bodyThatIsNotWanted_isNotWaitedFor() throws {
        let receiver = try closed()
        let heads = [
            RawRequest.head(length: 50_000, token: "wrong"),
            RawRequest.head(extra: "Transfer-Encoding: chunked\r\n", token: "wrong"),
            "POST /nowhere HTTP/1.1\r\nHost: r\r\nContent-Length: 9\r\n\r\n",
            "POST /login HTTP/1.1\r\nHost: r\r\nContent-Length: 5000\r\n\r\n",
        ]
        let clients = try heads.map { head in
            let client = try RawClient(receiver)
            client.send(head)
            return client
        }
        #expect(clients.map { $0.answer()?.status } == [401, 401, 404, 413])
        #expect(clients.allSatisfy { $0.isAtEnd() })
    }

    /// Bytes that trickle have a deadline: soon for unknown clients, later for devices.
    @Test func bodiesThatTrickle_haveAnEnd() throws {
        let receiver = try closed()
        let form = "Host: r\r\nContent-Length: 4000\r\n\r\n"
        let heads = [
            "POST /login HTTP/1.1\r\n" + form, "POST /api/device/enroll HTTP/1.1\r\n" + form,
            "POST /api/device/enroll HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n",
            RawRequest.head(length: 1 << 20, token: "good"),
            RawRequest.head(extra: "Transfer-Encoding: chunked\r\n", token: "good"),
        ]
        let clients = try heads.map { head in
            let client = try RawClient(receiver)
            client.send(head)
            return client
        }
        var ended: [Int] = []
        try waitUntil("the end of all of them", limit: .seconds(120)) {
            for (number, client) in clients.enumerated() where !ended.contains(number) {
                client.send(heads[number].contains("chunked") ? "1\r\n \r\n" : " ")
                if client.hasNews() { ended.append(number) }
            }
            usleep(50_000)
            return ended.count == clients.count
        }
        #expect(Set(ended.prefix(3)) == [0, 1, 2])
        #expect(clients.allSatisfy { $0.answer() == nil })
    }

    // MARK: Behind a proxy

    /// A client behind a proxy gets as many connections as one without.
    @Test func clientBehindAProxy_hasSoManyRequestsAtOnce() throws {
        let receiver = try closed(["--behind-proxy"])
        func head(_ client: String, length: Int = 1000) -> String {
            let extra = "X-Forwarded-For: \(client)\r\n"
            return RawRequest.head(length: length, extra: extra, token: "good")
        }
        func post(_ client: String) throws -> Int? {
            let body = RawRequest.batch([UUID().uuidString])
            let connection = try RawClient(receiver)
            connection.send(head(client, length: body.count))
            connection.send(body)
            return connection.answer()?.status
        }
        let held = try (0..<16).map { _ in
            let client = try RawClient(receiver)
            client.send(head("192.0.2.1") + " ")
            return client
        }
        try waitUntil("a refusal") { try post("192.0.2.1") == 429 }
        #expect(try post("192.0.2.2") == 200)
        // The end of one request makes room for the next.
        held[0].finishSending()
        try waitUntil("room") { try post("192.0.2.1") == 200 }
    }

    /// A proxy may add a line after the ones its client wrote.
    @Test func lastForwardedForLine_saysWhoTheClientIs() throws {
        let receiver = try closed(["--behind-proxy"])
        let code = #"{"code": "0000-0000-0000-0000", "device_id": "d1"}"#
        func guess(_ lines: String...) throws -> Int? {
            let client = try RawClient(receiver)
            let fields = lines.map { "X-Forwarded-For: \($0)\r\n" }.joined()
            client.send(
                "POST /api/device/enroll HTTP/1.1\r\nHost: r\r\n\(fields)Content-Length: \(code.utf8.count)\r\n\r\n\(code)"
            )
            return client.answer()?.status
        }
        let guesses = try (0..<20).map { try guess("10.0.0.\($0)", "192.0.2.1, 192.0.2.7") }
        #expect(guesses.last == 429)
        #expect(try guess("192.0.2.7", "192.0.2.8") == 403)
    }

    // MARK: Guessing

    @Test func tokenGuesses_areLimited_withoutBlockingDevices() throws {
        let receiver = try closed(["--behind-proxy"])
        func verify(_ token: String, from address: String) throws -> Int? {
            let client = try RawClient(receiver)
            client.send(
                "POST /api/device/verify HTTP/1.1\r\nHost: r\r\nX-Forwarded-For: \(address)\r\nX-Device-Token: \(token)\r\nContent-Length: 0\r\n\r\n"
            )
            return client.answer()?.status
        }
        #expect(try verify("good", from: "192.0.2.1") == 200)
        let guesses = try (0..<20).map { try verify("guess\($0)", from: "192.0.2.1") }
        #expect(guesses.prefix(10).allSatisfy { $0 == 401 } && guesses.last == 429)
        // The right token cannot be found this way, and its owner is not locked out.
        #expect(try verify("other", from: "192.0.2.1") == 429)
        #expect(try verify("good", from: "192.0.2.1") == 200)
        #expect(try verify("other", from: "192.0.2.2") == 200)
        // A restart forgets who was there, but a token that cannot be guessed still works.
        #expect(try verify(Self.long, from: "192.0.2.1") == 200)
        #expect(try verify(Self.long + "8", from: "192.0.2.1") == 429)
    }

    /// One subscriber has all addresses of an IPv6 network.
    @Test func addressesOfOneNetwork_countAsOne() throws {
        let receiver = try closed(["--behind-proxy"])
        func verify(from address: String) throws -> Int? {
            let client = try RawClient(receiver)
            client.send(
                "POST /api/device/verify HTTP/1.1\r\nHost: r\r\nX-Forwarded-For: \(address)\r\nX-Device-Token: no\r\nContent-Length: 0\r\n\r\n"
            )
            return client.answer()?.status
        }
        let guesses = try (0..<20).map { try verify(from: "2001:db8:1:2:\($0)::\($0)") }
        #expect(guesses.prefix(10).allSatisfy { $0 == 401 } && guesses.last == 429)
        #expect(try verify(from: "2001:db8:1:3::1") == 401)
    }

    @Test(arguments: [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:db8::1", "2001:db8::/64"),
        ("::1", "::/64"), ("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "::ffff:192.0.2.7"),
        ("fe80::1", "fe80::1"), ("", ""), ("unknown", "unknown"),
        ("2001:db8::1%eth0", "2001:db8::1%eth0"),
    ])
    func network_isTheFirst64Bits(address: String, network: String) {
        #expect(clientNetwork(address) == network)
    }

    /// Another site's page cannot log a browser in or out.
    @Test func formsOfOtherSites_areRefused() throws {
        let receiver = try closed()
        let browser = try PageClient(receiver, viewer: "anna")
        for origin in ["https://evil.example", "null", "http://r.evil.example", "http://r:81"] {
            browser.extra = "Origin: \(origin)\r\n"
            #expect(try browser.request("POST", "/logout").status == 403)
            #expect(try browser.logIn(browser.token) == 403)
            browser.extra = ""
            #expect(try browser.get("/").status == 200)
        }
        for own in ["Origin: https://r\r\n", "Origin: null\r\nSec-Fetch-Site: same-origin\r\n"] {
            browser.extra = own
            #expect(try browser.logIn(browser.token) == 303)
        }
        #expect(try browser.request("POST", "/logout").status == 303)
        #expect(try browser.get("/").status == 303)
    }
}
