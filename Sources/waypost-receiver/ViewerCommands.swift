// `waypost-receiver viewers`: manages access to the page.
import ArgumentParser
import Foundation
import Host
import ServerBase
import ServerWeb

struct ViewerCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "viewers",
        abstract: "Manage the tokens of people who view the page.",
        discussion: "The receiver may be running. Without a viewer there is no page.",
        subcommands: [Add.self, Link.self, List.self, Drop.self]
    )

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a viewer's token, or a login link, and print it once."
        )

        @OptionGroup var place: DataLocation
        @Argument(help: "The viewer's name: letters, digits, '.', '_', '-'.") var name: String
        @Option(help: "viewer: may read; editor: may also name and set up devices.")
        var role = ViewerRole.viewer
        @Option(
            help: ArgumentHelp(
                "Print a login link to this server instead of the token; it works once, for an hour.",
                valueName: "url"
            )
        )
        var link: PageAddress?

        func run() throws {
            guard isName(name) else {
                throw ValidationError("a name has 1 to 64 letters, digits, '.', '_' or '-'")
            }
            try place.expectThere()
            let viewers = try place.orFail { try Viewers(directory: place.data) }
            guard let token = try place.orFail({ try viewers.add(name, role, at: Date()) }) else {
                throw place.failure("there is a viewer \(name) already; see `viewers drop`")
            }
            if let link {
                try place.orFail { try ViewerCommands.printLink(link.text, for: name, viewers) }
            } else {
                print(token.text)
                report("the token of \(name); kept as a hash: it cannot be shown again")
            }
        }
    }

    struct Link: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a link that logs in one browser, once, within an hour."
        )

        @OptionGroup var place: DataLocation
        @Argument(help: "The viewer's name.") var name: String
        @Option(help: "The server's address: https://HOST.") var url: PageAddress

        func run() throws {
            try place.expectThere()
            let viewers = try place.orFail { try Viewers(directory: place.data) }
            try place.orFail { try ViewerCommands.printLink(url.text, for: name, viewers) }
        }
    }

    /// Makes and prints a link; throws a `Failure` if there is no such viewer.
    static func printLink(_ address: String, for name: String, _ viewers: Viewers) throws {
        guard let secret = try viewers.addLink(for: name, at: Date()) else {
            throw Failure("there is no viewer \(printable(name, limit: 80)); see `viewers list`")
        }
        print("\(address)/login?once=\(secret.text)")
        report(
            "logs in one browser as \(name), once, within an hour; another link: "
                + "waypost-receiver viewers link \(name) --url \(address)"
        )
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the viewers.")

        @OptionGroup var place: DataLocation

        func run() throws {
            try place.expectThere()
            let entries = try place.orFail { try Viewers(directory: place.data).list(at: Date()) }
            for entry in entries {
                let browsers = entry.sessions == 1 ? "1 browser" : "\(entry.sessions) browsers"
                let role = entry.role == .editor ? ", editor" : ""
                print("\(entry.name)  since \(day(entry.created)), \(browsers) logged in\(role)")
            }
        }
    }

    struct Drop: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End a viewer's token and all its sessions at once."
        )

        @OptionGroup var place: DataLocation
        @Argument(help: "The viewer's name.") var name: String

        func run() throws {
            try place.expectThere()
            guard try place.orFail({ try Viewers(directory: place.data).drop(name) }) else {
                throw place.failure("there is no viewer \(printable(name, limit: 80))")
            }
        }
    }
}

/// The address of a server's page, `https://host`, without a slash at its end.
struct PageAddress: ExpressibleByArgument {
    let text: String

    init?(argument: String) {
        let text = argument.hasSuffix("/") ? String(argument.dropLast()) : argument
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), let url = URL(string: text),
            ["http", "https"].contains(url.scheme), let host = url.host, !host.isEmpty,
            url.user == nil, url.path.isEmpty, url.query == nil, url.fragment == nil
        else { return nil }
        self.text = text
    }
}

extension ViewerRole: ExpressibleByArgument {}
