// `waypost-receiver viewers`: manages access to the page.
import ArgumentParser
import FoundationEssentials
import Host
import Receiver

struct ViewerCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "viewers",
        abstract: "Manage the tokens of people who view the page.",
        discussion: "The receiver may be running. Without a viewer there is no page.",
        subcommands: [Add.self, List.self, Drop.self]
    )

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a viewer's token, and print it once."
        )

        @OptionGroup var place: DataLocation
        @Argument(help: "The viewer's name: letters, digits, '.', '_', '-'.") var name: String

        func run() throws {
            guard isName(name) else {
                throw ValidationError("a name has 1 to 64 letters, digits, '.', '_' or '-'")
            }
            try place.expectThere()
            let viewers = try place.orFail { try Viewers(directory: place.data) }
            guard let token = try place.orFail({ try viewers.add(name, at: Date()) }) else {
                throw place.failure("there is a viewer \(name) already; see `viewers drop`")
            }
            print(token.text)
            tell("the token of \(name); kept as a hash: it cannot be shown again")
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the viewers.")

        @OptionGroup var place: DataLocation

        func run() throws {
            try place.expectThere()
            let entries = try place.orFail { try Viewers(directory: place.data).list(at: Date()) }
            for entry in entries {
                let browsers = entry.sessions == 1 ? "1 browser" : "\(entry.sessions) browsers"
                print("\(entry.name)  since \(day(entry.created)), \(browsers) logged in")
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
