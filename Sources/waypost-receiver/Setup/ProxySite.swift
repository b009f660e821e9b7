// The site of a proxy with TLS in front of the server, made from the shipped example.
import ArgumentParser
import Foundation
import Host

/// The proxies that `setup` can configure.
enum ProxyKind: String, CaseIterable, ExpressibleByArgument {
    case caddy
    case nginx

    /// Returns the proxy that is installed; throws a `Failure` if there is not exactly one.
    static func installed() throws -> Self {
        let found = allCases.filter { Tool($0.rawValue) != nil }
        guard let first = found.first else {
            throw Failure("no proxy for TLS is installed; run: sudo apt install caddy")
        }
        guard found.count == 1 else {
            throw Failure("caddy and nginx are installed; choose one with --proxy caddy or nginx")
        }
        return first
    }
}

/// The values that a site has in place of the example's.
struct SiteValues {
    var host: SiteName
    var email: String?
    /// True for a certificate of Caddy's own authority.
    var isPrivate: Bool
    /// The server's address for the proxy, `127.0.0.1:8080`.
    var upstream: String
    var maxBody: Int
}

/// A file of its own for the site; of the person's files only the Caddyfile gets one line.
struct ProxySite {
    private static let mark = "# Written by `waypost-receiver setup`, which replaces it."

    private let kind: ProxyKind
    private let tool: Tool
    /// `/etc` but in tests.
    private let etc: String
    private let text: String

    /// Throws a `Failure` with the next step if the proxy or its certificate is missing.
    init(_ kind: ProxyKind, _ values: SiteValues, etc: String, templates: String) throws {
        guard let tool = Tool(kind.rawValue) else {
            throw Failure("\(kind) is not installed; run: sudo apt install \(kind)")
        }
        (self.kind, self.tool, self.etc) = (kind, tool, etc)
        let example = "\(templates)/\(kind == .caddy ? "Caddyfile" : "nginx.conf")"
        guard let lines = try Self.read(example) else {
            throw Failure(
                "there is no \(example): setup needs the files of the package waypost-receiver; "
                    + "install it, or configure a proxy by hand (waypost-receiver(1), TLS)"
            )
        }
        let site = kind == .caddy ? Self.caddy(lines, values) : Self.nginx(lines, values, etc: etc)
        text = "\(Self.mark)\n" + site
        let certificate = "\(etc)/letsencrypt/live/\(values.host.text)/fullchain.pem"
        guard kind == .caddy || access(certificate, F_OK) == 0 else {
            throw Failure(
                "nginx needs a certificate, and there is no \(certificate); get one, then run setup "
                    + "again: sudo certbot certonly --webroot -w /var/www/html -d \(values.host.text) "
                    + "-m \(values.email ?? "ADDRESS") --deploy-hook 'systemctl reload nginx'"
            )
        }
    }

    /// Returns the example's site, without its global options, which the Caddyfile has once.
    private static func caddy(_ example: String, _ values: SiteValues) -> String {
        let name = "waypost.example.org {"
        guard let start = example.range(of: name) else { return "" }
        let tls = values.isPrivate ? "internal" : values.email
        return "\(values.host.text) {\n" + (tls.map { "\ttls \($0)" } ?? "")
            + example[start.upperBound...].replacing("127.0.0.1:8080", with: values.upstream)
    }

    private static func nginx(_ example: String, _ values: SiteValues, etc: String) -> String {
        example.replacing("waypost.example.org", with: values.host.text)
            .replacing("/etc/letsencrypt", with: "\(etc)/letsencrypt")
            .replacing("127.0.0.1:8080", with: values.upstream)
            .replacing("client_max_body_size 16m", with: "client_max_body_size \(values.maxBody)")
    }

    // MARK: Files

    private var file: String {
        kind == .caddy
            ? "\(etc)/caddy/waypost-receiver.caddy" : "\(etc)/nginx/conf.d/waypost-receiver.conf"
    }

    private var main: String {
        kind == .caddy ? "\(etc)/caddy/Caddyfile" : "\(etc)/nginx/nginx.conf"
    }

    /// Writes the site, and checks all of the proxy's configuration; returns what it changed.
    ///
    /// Throws a `Failure`; then all files are as before.
    func install() throws -> [String] {
        let before = try Self.read(file)
        if let before, !before.hasPrefix(Self.mark) {
            throw Failure("\(file) is not from setup; move it away, then run setup again")
        }
        let mainBefore = try Self.read(main)
        var notes: [String] = []
        if before != text {
            if let before {
                try Self.write(before, to: "\(file).old")
                notes.append("\(file): replaced; the earlier one is \(file).old")
            } else {
                notes.append("\(file): written")
            }
            try Self.write(text, to: file)
        }
        do {
            if let note = try importSite(mainBefore) { notes.append(note) }
            try check()
        } catch {
            try Self.restore(before, file)
            if kind == .caddy { try Self.restore(mainBefore, main) }
            throw error
        }
        return notes
    }

    /// Adds the line that includes the site to the Caddyfile; nginx includes its folder by itself.
    private func importSite(_ before: String?) throws -> String? {
        guard kind == .caddy else { return nil }
        let line = "import \(file)"
        let lines = (before ?? "").split(whereSeparator: \.isNewline).map { trimmed($0) }
        if lines.contains(line) { return nil }
        let old = before ?? ""
        try Self.write(
            old + (old.hasSuffix("\n") || old.isEmpty ? "" : "\n") + "\(line)\n",
            to: main
        )
        return "\(main): got the line `\(line)`, and nothing else changed"
    }

    private func check() throws {
        let done: (isSuccess: Bool, output: String)
        if kind == .nginx {
            done = try tool.run(["-t", "-q", "-c", main])
        } else {
            let arguments = ["validate", "--adapter", "caddyfile", "--config", main]
            // As its own user: log files and keys that the check makes must not be root's.
            if let user = getpwnam("caddy"), let runuser = Tool("runuser") {
                let home = String(cString: user.pointee.pw_dir)
                done = try runuser.run(["-u", "caddy", "--", tool.path] + arguments, home: home)
            } else {
                done = try tool.run(arguments)
            }
        }
        guard !done.isSuccess else { return }
        let reason = done.output.split(whereSeparator: \.isNewline).last ?? ""
        throw Failure(
            "\(kind) refuses its configuration with this site, so nothing was changed; correct "
                + "\(main), then run setup again: \(reason)"
        )
    }

    /// Starts the proxy, or makes it read its configuration.
    func reload(_ manager: SystemManager) throws {
        try manager.run("enable", kind.rawValue)
        try manager.run("reload-or-restart", kind.rawValue)
    }

    private static func read(_ path: String) throws -> String? {
        do throws(SystemError) {
            let file = try SmallFile.read(path, limit: 1 << 20)
            return String(decoding: file.bytes, as: UTF8.self)
        } catch {
            guard error.code == ENOENT else { throw Failure("\(path): \(error.reason)") }
            return nil
        }
    }

    private static func write(_ text: String, to path: String) throws {
        try SmallFile.replace(path, Array(text.utf8), mode: 0o644, keepsOwner: true)
    }

    private static func restore(_ before: String?, _ path: String) throws {
        if let before { try write(before, to: path) } else { unlink(path) }
    }
}
