// `waypost-receiver codes`: makes, lists and drops enrolment codes.
import ArgumentParser
import FoundationEssentials
import Host
import ServerBase
import ServerWeb

struct Codes: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Manage enrolment codes; each enrols one device.",
        discussion:
            "The receiver may be running. From the first code on it refuses unknown tokens.",
        subcommands: [Add.self, List.self, Drop.self]
    )

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make codes, and print them once."
        )

        @OptionGroup var place: DataLocation
        @Option(help: "Days until the code expires.") var days = 7
        @Option(help: ArgumentHelp("The only device that can use it.", valueName: "id"))
        var device: String?
        @Flag(help: "Allow an enrolled device; its old token ends.")
        var replace = false
        @Option(name: .customShort("n"), help: "How many codes to make.") var count = 1
        @Flag(help: "Print CSV with a header: id, code, valid_until, device.") var csv = false

        mutating func validate() throws {
            guard (1...366).contains(days) else {
                throw ValidationError("--days takes a whole number from 1 to 366")
            }
            if let device, !isName(device) {
                throw ValidationError("--device takes a device_id: letters, digits, . - and _")
            }
            guard (1...10_000).contains(count) else {
                throw ValidationError("-n takes a whole number from 1 to 10000")
            }
            guard device == nil || count == 1 else {
                throw ValidationError("a device needs one code; -n does not go with --device")
            }
        }

        mutating func run() throws {
            let end = Date(timeIntervalSinceNow: TimeInterval(days) * 86_400)
            let terms = CodeTerms(device: device, replaces: replace)
            try place.expectThere()
            try expectUsable(terms)
            let codes = try place.perform { try $0.add(count, until: end, terms) }
            if csv {
                print("id,code,valid_until,device")
                let rest =
                    "\(WallTime(milliseconds: Int64(end.timeIntervalSince1970 * 1000)).rfc3339),\(device ?? "")"
                for (id, code) in codes { print("\(id),\(code.grouped),\(rest)") }
            } else {
                for (_, code) in codes { print(code.grouped) }
            }
            let text = "good once until \(day(end))\(terms.text); "
            report(
                codes.count == 1
                    ? "code \(codes[0].id), \(text)kept as a hash: it cannot be shown again"
                    : "\(codes.count) codes, each \(text)kept as hashes: they cannot be shown again"
            )
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
