// `waypost-receiver setup`: the files of a proxy, and what it prints for people.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite(.enabled(if: getuid() == 0)) struct SetupTests {
    /// A running server with a configuration file, and the folders of both proxies.
    private final class Fixture {
        let folder = TemporaryFolder("etc", "etc/caddy", "etc/nginx", "etc/nginx/conf.d")
        let receiver: ReceiverProcess
        let config: String

        init() throws {
            // Caddy checks its files as its own user.
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o755],
                ofItemAtPath: folder.path
            )
            config = folder.path + "/r.toml"
            try folder.write("behind_proxy = true\n", to: "r.toml")
            receiver = try ReceiverProcess(["--config", config])
            try folder.write(
                """
                # mine
                data = "\(receiver.folder)"
                listen = "0.0.0.0:\(receiver.port)"
                behind_proxy = false
                """,
                to: "r.toml"
            )
            try folder.write(
                "# mine\n:8089 {\n\trespond hello\n}",
                to: "etc/caddy/Caddyfile",
                mode: 0o644
            )
            try folder.write(
                """
                events {}
                http {
                    include \(folder.path)/etc/nginx/conf.d/*.conf;
                }
                """,
                to: "etc/nginx/nginx.conf"
            )
        }

        func setup(_ words: String...) throws -> Outcome {
            let fixed = [
                "setup", "--config", config, "--etc", folder.path + "/etc", "--templates",
                Tree.path("deploy/proxy"),
            ]
            return try Process.run(Tree.program("waypost-receiver"), fixed + words)
        }

        func text(_ name: String) -> String? { try? folder.read("etc/" + name) }
    }

    private static let hasCaddy = FileManager.default.isExecutableFile(atPath: "/usr/bin/caddy")
    private static let hasNginx = FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx")

    @Test(.enabled(if: hasCaddy)) func setup_writesTheSite_andSaysWhatToType() throws {
        let fixture = try Fixture()
        let done = try fixture.setup(
            "--host",
            "Data.Example.org",
            "--email",
            "a@example.org",
            "--proxy",
            "caddy"
        )
        #expect(done.status == 0, "\(done.error)")
        let site = try #require(fixture.text("caddy/waypost-receiver.caddy"))
        #expect(site.contains("\ndata.example.org {\n\ttls a@example.org\n"))
        #expect(site.contains("reverse_proxy 127.0.0.1:\(fixture.receiver.port) {"))
        let file = fixture.folder.path + "/etc/caddy/waypost-receiver.caddy"
        #expect(
            fixture.text("caddy/Caddyfile")
                == "# mine\n:8089 {\n\trespond hello\n}\nimport \(file)\n"
        )
        let listen = "listen = \"127.0.0.1:\(fixture.receiver.port)\""
        #expect(try fixture.folder.read("r.toml").hasSuffix("\n\(listen)\nbehind_proxy = true"))
        #expect(done.output.contains("https://data.example.org/login?once="))
        let line = done.output.split(separator: "\n").first { $0.contains("waypost enroll") }
        let words = try #require(line).split(separator: " ")
        #expect(words[3...4] == ["--endpoint", "https://data.example.org"])
        try fixture.receiver.enrol(code: String(try #require(words.last)))
        // Again, for another host: a new link for the same viewer, and the old site is kept.
        let again = try fixture.setup("--host", "10.0.0.7", "--proxy", "caddy")
        #expect(again.status == 0, "\(again.error)")
        #expect(again.output.contains("https://10.0.0.7/login?once="))
        #expect(again.output.contains("--ca-file root.crt"))
        #expect(
            try #require(fixture.text("caddy/waypost-receiver.caddy")).contains("\ttls internal\n")
        )
        #expect(fixture.text("caddy/waypost-receiver.caddy.old") == site)
        #expect(fixture.text("caddy/Caddyfile")?.components(separatedBy: "import").count == 2)
    }

    @Test(.enabled(if: hasCaddy)) func filesOfAPerson_stayAsTheyAre() throws {
        let fixture = try Fixture()
        let own = "data.example.org {\n\trespond mine\n}\n"
        try fixture.folder.write(own, to: "etc/caddy/Caddyfile", mode: 0o644)
        let twice = try fixture.setup("--host", "data.example.org", "--proxy", "caddy")
        #expect(twice.status == 1)
        #expect(twice.error.contains("ambiguous site definition"), "\(twice.error)")
        #expect(fixture.text("caddy/Caddyfile") == own)
        #expect(fixture.text("caddy/waypost-receiver.caddy") == nil)
        try fixture.folder.write("other.org {\n}\n", to: "etc/caddy/waypost-receiver.caddy")
        let foreign = try fixture.setup("--host", "data.example.org", "--proxy", "caddy")
        #expect(foreign.status == 1)
        #expect(foreign.error.contains("is not from setup; move it away"))
        #expect(fixture.text("caddy/waypost-receiver.caddy") == "other.org {\n}\n")
        // No link and no code were made.
        #expect(try fixture.receiver.command("codes", "list").output.isEmpty)
        #expect(try fixture.receiver.command("viewers", "list").output.isEmpty)
    }

    @Test(.enabled(if: hasNginx)) func nginx_needsItsCertificateFirst() throws {
        let fixture = try Fixture()
        let words = ["--host", "data.example.org", "--email", "a@example.org", "--proxy", "nginx"]
        let first = try fixture.setup(words[0], words[1], words[2], words[3], words[4], words[5])
        #expect(first.status == 1)
        #expect(first.error.contains("sudo certbot certonly --webroot"), "\(first.error)")
        #expect(first.error.contains("-d data.example.org -m a@example.org"))
        #expect(fixture.text("nginx/conf.d/waypost-receiver.conf") == nil)
        let live = fixture.folder.path + "/etc/letsencrypt/live/data.example.org"
        try FileManager.default.createDirectory(atPath: live, withIntermediateDirectories: true)
        let made = try Process.run(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=data.example.org",
                "-keyout", live + "/privkey.pem", "-out", live + "/fullchain.pem",
            ]
        )
        try #require(made.status == 0, "\(made.error)")
        let second = try fixture.setup("--host", "data.example.org", "--proxy", "nginx")
        #expect(second.status == 0, "\(second.error)")
        let site = try #require(fixture.text("nginx/conf.d/waypost-receiver.conf"))
        #expect(site.contains("server_name data.example.org;"))
        #expect(site.contains("proxy_pass http://127.0.0.1:\(fixture.receiver.port);"))
        #expect(site.contains("client_max_body_size 16777216;"))
    }

    @Test(arguments: [
        "a b", "a{", "x;y", "-a.org", "a..b", "a\nb", "a.org/x", "a.org:443", "$HOME", "ä.org",
        "1.2.3", "300.1.1.1", String(repeating: "a", count: 64) + ".org", "*.example.org",
    ])
    func hostThatIsNotAName_isRefused(host: String) throws {
        let fixture = try Fixture()
        let done = try fixture.setup("--host=\(host)", "--proxy", "caddy")
        #expect(done.status == 64)
        #expect(done.error.contains("--host takes a name such as"), "\(done.error)")
        #expect(fixture.text("caddy/waypost-receiver.caddy") == nil)
    }

    @Test(arguments: ["a", "a@", "a b@c.org", "-a@c.org", "a@c.org}", "a@c.org\nb", "a@@c.org"])
    func addressThatIsNotAMailAddress_isRefused(email: String) throws {
        let done = try Fixture().setup("--host", "a.org", "--email=\(email)", "--proxy", "caddy")
        #expect(done.status == 64)
        #expect(done.error.contains("--email takes a mail address"))
    }

    @Test(.enabled(if: hasCaddy)) func withoutATerminal_theMissingOptionIsNamed() throws {
        let done = try Fixture().setup("--proxy", "caddy")
        #expect(done.status == 1)
        #expect(done.error.contains("there is no terminal to ask on; add --host NAME"))
    }

    /// The program alone, without the rest of its package: it gave Foundation's raw words.
    @Test(.enabled(if: hasCaddy)) func missingExampleOfTheSite_isNamed() throws {
        let fixture = try Fixture()
        let none = fixture.folder.path + "/none"
        let done = try fixture.setup("--host", "a.org", "--proxy", "caddy", "--templates", none)
        #expect(done.status == 1)
        #expect(
            done.error.contains(
                "there is no \(none)/Caddyfile: setup needs the files of the package"
            )
        )
        #expect(!done.error.contains("NSCocoa"))
    }

    @Test(.enabled(if: hasCaddy)) func serverThatDoesNotRun_isNamed_withTheNextStep() throws {
        let fixture = try Fixture()
        fixture.receiver.kill()
        let done = try fixture.setup("--host", "a.org", "--proxy", "caddy")
        #expect(done.status == 1)
        #expect(done.error.contains("does not answer"), "\(done.error)")
        #expect(done.error.contains("waypost-receiver serve --config \(fixture.config)"))
    }
}
