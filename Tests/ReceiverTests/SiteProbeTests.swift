// The check that `setup` makes of its own site, and a server whose port is in use.
import Foundation
import Host
import ReceiverSupport
import ServerWeb
import Support
import Testing

@Suite struct SiteProbeTests {
    /// Ends each handshake, as Caddy does before it has a certificate.
    private static let server = """
        import socket, ssl, sys
        listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        while True:
            client, _ = listener.accept()
            try: context.wrap_socket(client, server_side=True)
            except OSError: client.close()
        """

    @Test func siteWithoutACertificateYet_isNamed() throws {
        let port = freePort()
        let server = try Process.started("/usr/bin/python3", ["-c", Self.server, "\(port)"])
        defer { server.killAndWait() }
        var why: String?
        try waitUntil("a server without a certificate") {
            why = try SiteProbe.trouble(at: "https://localhost:\(port)/healthz", within: .zero)
            return why?.contains("that the server runs") == false
        }
        #expect(
            why?.contains(
                "the server has no certificate for this name yet: look at its proxy's log"
            )
                == true,
            "\(why ?? "")"
        )
    }

    @Test func siteThatComesLater_isWaitedFor() throws {
        let port = freePort()
        let url = "http://127.0.0.1:\(port)/healthz"
        #expect(try SiteProbe.trouble(at: url, within: .zero) != nil)
        let arguments = ["-m", "http.server", "\(port)", "--bind", "127.0.0.1"]
        let server = try Process.started("/usr/bin/python3", arguments)
        defer { server.killAndWait() }
        #expect(try SiteProbe.trouble(at: url, within: .seconds(60)) == nil)
    }

    /// 127.0.0.2 stands for the public address behind a router.
    @Test func siteThatAnswersOnlyHere_isFound() throws {
        let port = freePort()
        let (url, address) = ("http://127.0.0.2:\(port)/", HostPort(host: "127.0.0.2", port: port))
        #expect(try !SiteProbe.answersOnlyHere(url, address))
        let arguments = ["-m", "http.server", "\(port)", "--bind", "127.0.0.1"]
        let server = try Process.started("/usr/bin/python3", arguments)
        defer { server.killAndWait() }
        try waitUntil("the server") { try SiteProbe.answersOnlyHere(url, address) }
        #expect(try SiteProbe.trouble(at: url, within: .zero) != nil)
        // It has no certificate; it is reached; the name is not known.
        let tls = "https://127.0.0.2:\(port)/"
        #expect(try !SiteProbe.answersOnlyHere(tls, address))
        #expect(try !SiteProbe.answersOnlyHere(url, HostPort(host: "127.0.0.1", port: port)))
        #expect(try !SiteProbe.answersOnlyHere(url, HostPort(host: "none.invalid", port: port)))
    }

    /// Names the program that has the port, and the key that sets another.
    @Test func portInUse_isNamedWithItsKey() throws {
        let (receiver, folder) = (try ReceiverProcess(), TemporaryFolder())
        let taken = "127.0.0.1:\(receiver.port)"
        for key in ["listen", "metrics"] {
            var arguments = ["--\(key)", taken, "--data", folder.path]
            if key == "metrics" { arguments += ["--listen", "127.0.0.1:\(freePort())"] }
            let second = try Process.run(Tree.program("waypost-receiver"), arguments)
            #expect(second.status == 1)
            let error = "cannot listen on \(taken): Address already in use by waypost-receiver "
            #expect(second.error.contains(error), "\(second.error)")
            #expect(second.error.contains("); --\(key) or the key \(key) sets another"))
        }
    }
}
