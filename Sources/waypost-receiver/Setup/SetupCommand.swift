// `waypost-receiver setup`: TLS, the first viewer and the first code in one command.
import ArgumentParser
import Configuration
import Foundation
import Host
import ServerArchive
import ServerBase
import ServerWeb

struct SetupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "setup",
        abstract: "Put a proxy with TLS in front, and make a login link and the first code.",
        discussion: """
            Asks on a terminal for what is not given. Writes the proxy's site into a file of its own, starts the \
            service, and prints what to type on the device. Run it again to change the host, or for another link.
            """
    )

    @Option(help: ArgumentHelp("The server's name in the DNS.", valueName: "name"))
    var host: String?
    @Option(help: ArgumentHelp("For the certificate authority's mails.", valueName: "address"))
    var email: String?
    @Option(help: "caddy or nginx (default: the one that is installed).") var proxy: ProxyKind?
    @Flag(help: "Certificate of Caddy's own authority, for a name that the internet does not know.")
    var privateAuthority = false
    @Option(help: "The first viewer's name, an editor.") var viewer = "admin"
    @Option(help: "The server's configuration file.") var config = ReceiverSettings.path
    @Option(help: .hidden) var etc = "/etc"
    @Option(help: .hidden) var templates = "/usr/share/waypost-receiver/proxy"

    func validate() throws {
        if let host, SiteName(host) == nil {
            throw ValidationError("--host takes \(SiteName.allowed); not \(printable(host))")
        }
        if let email, !SiteName.isMail(email) {
            throw ValidationError("--email takes a mail address; not \(printable(email))")
        }
        guard isName(viewer) else {
            throw ValidationError("--viewer has 1 to 64 letters, digits, '.', '_' or '-'")
        }
    }

    func run() throws {
        guard geteuid() == 0 else {
            complain("setup writes files of the system; run: sudo waypost-receiver setup")
            throw ExitCode(1)
        }
        do {
            try setUp()
        } catch let errors as ConfigurationErrors {
            report("\(errors)")
            throw ExitCode(78)
        } catch let error as ExitCode {
            throw error
        } catch {
            complain("setup: \(error)")
            throw ExitCode(1)
        }
    }

    private func setUp() throws {
        let service = try ServiceSetup(config: config)
        let kind = try proxy ?? ProxyKind.installed()
        let host = try givenHost()
        let isPrivate = kind == .caddy && (privateAuthority || host.isPrivate)
        let values = SiteValues(
            host: host,
            email: try isPrivate ? nil : givenEmail(),
            isPrivate: isPrivate,
            upstream: service.upstream,
            maxBody: service.settings.maxBody
        )
        let site = try ProxySite(kind, values, etc: etc, templates: templates)
        for note in try site.install() { print(note) }
        try service.start()
        if let manager = SystemManager() {
            try site.reload(manager)
        } else {
            print("systemd is not running here: start \(kind), or make it reload, yourself")
        }
        try admit(host, isPrivate: isPrivate, data: service.settings.data)
        // One's own authority is neither asked nor trusted here.
        if SystemManager() != nil, !isPrivate { try checkSite(host, kind) }
    }

    /// Asks the server by its own address; ends with status 1 while it has no certificate.
    private func checkSite(_ host: SiteName, _ kind: ProxyKind) throws {
        let url = "https://\(host.text)/healthz"
        guard let why = try SiteProbe.trouble(at: url, within: .seconds(20)) else { return }
        if try SiteProbe.answersOnlyHere(url, HostPort(host: host.text, port: 443)) {
            print(
                """

                \(host.text) has its certificate. This machine cannot reach its own public address, as is usual
                behind a router. Open \(url) elsewhere, such as on a phone without Wi-Fi.
                If nothing answers there, let the router forward its ports 80 and 443 to this machine.
                """
            )
            return
        }
        report(
            """

            \(url) does not answer yet: \(why)
            It needs \(host.text) in the DNS with the address of this machine, and its ports 80 and 443 open.
            Look at: sudo journalctl -u \(kind) -n 20
            """
        )
        throw ExitCode(1)
    }

    // MARK: Questions

    private func givenHost() throws -> SiteName {
        if let host, let name = SiteName(host) { return name }
        while let answer = try ask("Name of this server, such as data.example.org", "--host NAME") {
            if let name = SiteName(answer) { return name }
            report("That is not \(SiteName.allowed).")
        }
        throw Failure("no name was given; add --host NAME")
    }

    private func givenEmail() throws -> String? {
        if let email { return email }
        guard isatty(STDIN_FILENO) != 0 else { return nil }
        while let answer = try ask("Mail address for the certificate (empty: none)", "--email") {
            if answer.isEmpty { return nil }
            if SiteName.isMail(answer) { return answer }
            report("That is not a mail address.")
        }
        return nil
    }

    /// Asks on the terminal; nil at the end of the input.
    ///
    /// Throws a `Failure` without a terminal.
    private func ask(_ question: String, _ option: String) throws -> String? {
        guard isatty(STDIN_FILENO) != 0 else {
            throw Failure("there is no terminal to ask on; add \(option)")
        }
        writeAll(Array("\(question): ".utf8), to: STDERR_FILENO)
        return readLine().map { trimmed($0) }
    }

    // MARK: Access

    /// Makes the viewer's link and a code as the owner of the data, and prints them.
    private func admit(_ host: SiteName, isPrivate: Bool, data: String) throws {
        let url = "https://\(host.text)"
        try DataOwner.become(of: data)
        print("\nThe page, for \(viewer):")
        let viewers = try Viewers(directory: data)
        // Nil for a viewer that is there already, who gets another link only.
        _ = try viewers.add(viewer, .editor, at: Date())
        try ViewerCommands.printLink(url, for: viewer, viewers)
        let end = Date(timeIntervalSinceNow: 7 * 86_400)
        guard let code = try Enrolments(directory: data).add(until: end).first?.code else { return }
        print("\nOn the first device (the code works once, until \(day(end))):")
        let authority = isPrivate ? " --ca-file root.crt" : ""
        print("  sudo waypost enroll --endpoint \(url) --code \(code.grouped)\(authority)")
        if isPrivate {
            print("root.crt is this server's authority; to copy it there first, type here:")
            print("  sudo cat \(Self.caddyRoot) >root.crt && scp root.crt DEVICE:")
        }
        print("\nA code for each further device: sudo waypost-receiver codes add")
    }

    private static let caddyRoot =
        "/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt"
}
