// `waypost-receiver codes`: makes, lists and drops enrolment codes.
import ArgumentParser
import FoundationEssentials
import Receiver

struct Codes: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Manage enrolment codes; each enrols one device.",
        discussion:
            "The receiver may be running. From the first code on it refuses unknown tokens.",
        subcommands: [Add.self, List.self, Drop.self]
    )

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Make a code, and print it once.")

        @OptionGroup var place: DataLocation
        @Option(help: "Days until the code expires.") var days = 7
        @Option(help: ArgumentHelp("The only device that can use it.", valueName: "id"))
        var device: String?
        @Flag(help: "Allow an enrolled device; its old token ends.")
        var replace = false

        mutating func validate() throws {
            guard (1...366).contains(days) else {
                throw ValidationError("--days takes a whole number from 1 to 366")
            }
            if let device, !isName(device) {
                throw ValidationError("--device takes a device_id: letters, digits, . - and _")
            }
        }

        mutating func run() throws {
            let end = Date(timeIntervalSinceNow: TimeInterval(days) * 86_400)
            let terms = CodeTerms(device: device, replaces: replace)
            try expectUsable(terms)
            let (id, code) = try place.perform { try $0.add(until: end, terms) }
            print(code.grouped)
            tell(
                "code \(id), good once until \(day(end))\(terms.text); kept as a hash: it cannot be "
                    + "shown again"
            )
            place.warnIfNoReceiver()
        }

        private func expectUsable(_ terms: CodeTerms) throws {
            guard let device = terms.device, !terms.replaces,
                try place.perform({ try $0.devices()[device]?.isHeld }) == true
            else { return }
            throw place.failure("\(device) is already enrolled; add --replace to end its token")
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the codes by their numbers."
        )

        @OptionGroup var place: DataLocation

        mutating func run() throws {
            try place.expectThere()
            let entries = try place.perform { try $0.list(at: Date()) }
            for entry in entries {
                switch entry.state {
                case .open:
                    print("\(entry.id)  open until \(day(entry.expires))\(entry.terms.text)")
                case .expired: print("\(entry.id)  expired on \(day(entry.expires))")
                case .used(let device): print("\(entry.id)  used by \(device)")
                }
            }
        }
    }

    struct Drop: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End a code; a device that has used it keeps its token."
        )

        @OptionGroup var place: DataLocation
        @Argument(help: "Its number in the list.") var id: Int64

        mutating func run() throws {
            try place.expectThere()
            let id = id
            guard try place.perform({ try $0.drop(id) }) else {
                throw place.failure("there is no code \(id)")
            }
        }
    }
}

extension CodeTerms {
    /// The terms as text, ` for d1, replaces its token`; empty for a code without terms.
    var text: String {
        (device.map { " for \($0)" } ?? "") + (replaces ? ", replaces its token" : "")
    }
}

/// Formats a date as `2026-11-29`, in UTC.
func day(_ date: Date) -> String { String(date.formatted(.iso8601).prefix(10)) }
