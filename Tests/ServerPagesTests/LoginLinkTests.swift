// Login links: they log in one browser, once, for an hour.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct LoginLinkTests {
    private static let database = ".receiver-viewers.sqlite"

    /// Runs a command that prints a link; returns the link's secret.
    private func secret(_ receiver: ReceiverProcess, _ words: String...) throws -> String {
        let outcome = try receiver.command(["viewers"] + words)
        let link = outcome.output.trimmingCharacters(in: .newlines)
        let start = "https://fleet.example.org:8443/login?once="
        #expect(link.hasPrefix(start), "\(outcome.error)")
        return String(link.dropFirst(start.count))
    }

    @Test func loginLink_worksOnce_andIsNotUsedUpByViewing() throws {
        let receiver = try ReceiverProcess()
        let host = "https://fleet.example.org:8443"
        let secret = try secret(receiver, "add", "anna", "--role", "editor", "--link", "\(host)/")
        let (browser, other) = (PageClient(receiver), PageClient(receiver))
        for _ in 0..<3 {
            let page = try browser.get("/login?once=\(secret)")
            #expect(page.status == 200)
            // A browser would send the secret to whoever gets the page's address as a referrer.
            #expect(page.header.contains("Referrer-Policy: strict-origin\r\n"))
            #expect(page.header.contains("Cache-Control: no-store"))
            #expect(page.body.contains(#"<input type="hidden" name="once" value="\#(secret)">"#))
            #expect(!page.body.contains(#"type="password""#))
        }
        let answer = try browser.logIn(form: "once=\(secret)")
        #expect(answer.status == 303)
        #expect(answer.header.contains("Location: /\r\n"))
        #expect(try browser.get("/").status == 200)
        let again = try other.logIn(form: "once=\(secret)")
        #expect(again.status == 403)
        #expect(again.body.contains("This link was used already"))
        let list = try receiver.command("viewers", "list").output
        #expect(list.contains(", 1 browser logged in, editor\n"))
        let file = FileManager.default.contents(atPath: "\(receiver.folder)/\(Self.database)")
        #expect(try #require(file).range(of: Data(secret.utf8)) == nil)
    }

    @Test func link_endsAfterAnHour_andWithItsViewer() throws {
        let receiver = try ReceiverProcess()
        let url = "https://fleet.example.org:8443"
        let first = try secret(receiver, "add", "anna", "--link", url)
        try receiver.sql("UPDATE links SET ends = ends - 3600", in: Self.database)
        let browser = PageClient(receiver)
        #expect(try browser.logIn(form: "once=\(first)").status == 403)
        let second = try secret(receiver, "link", "anna", "--url", url)
        let third = try secret(receiver, "link", "anna", "--url", url)
        #expect(try browser.logIn(form: "once=\(second)").status == 303)
        #expect(try receiver.command("viewers", "drop", "anna").status == 0)
        #expect(try receiver.command("viewers", "add", "bert").status == 0)
        #expect(try browser.logIn(form: "once=\(third)").status == 403)
        #expect(try browser.get("/").status == 303)
        let none = try receiver.command("viewers", "link", "anna", "--url", url)
        #expect(none.status == 1)
        #expect(none.error.contains("there is no viewer anna"))
        for url in ["fleet", "ftp://a", "https://", "https://a/b", "https://a?b", "https://u@a"] {
            #expect(try receiver.command("viewers", "link", "bert", "--url", url).status == 64)
        }
        #expect(try receiver.command("viewers", "add", "c", "--role", "root").status == 64)
    }

    @Test func guessesAtLinks_areLimited() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.command("viewers", "add", "anna").status == 0)
        let guesser = PageClient(receiver)
        #expect(try guesser.get("/login?once=%3Cscript%3E").body.contains("&lt;script&gt;"))
        for _ in 0..<10 { #expect(try guesser.logIn(form: "once=guess").status == 403) }
        try waitUntil("an address that has to wait") {
            try guesser.logIn(form: "once=guess").status == 429
        }
        let url = ["viewers", "link", "anna", "--url", "https://a"]
        let link = try receiver.command(url).output.trimmingCharacters(in: .newlines)
        let once = try #require(link.components(separatedBy: "once=").last)
        #expect(try guesser.logIn(form: "once=\(once)").status == 303, "\(link)")
        #expect(try guesser.logIn(form: "once=\(once)").status == 429)
    }
}
