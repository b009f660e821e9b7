// What is wrong with a card, told on the card itself and to `status`.
import Glibc
import Host
import JSON

/// Both places where a person may look, each rewritten only when what it says changes.
struct CardReport {
    private static let name = "waypost-errors.txt"
    private static let fileName = "import-problems.json"

    /// What `status` reads in the runtime directory: of the last card or stick, and of the server that it named.
    struct Problems: Codable, Sendable, Equatable {
        var card: [CardProblem] = []
        var server: [CardProblem] = []
        /// When the server was asked, in ms since the boot.
        var asked: Int64?
        /// The looks at a card or a stick that have begun and not ended: when, in ms since the boot.
        var begun: [String: Int64]?

        /// What is told of a card or a stick, but for a look that did not end.
        fileprivate var found: [CardProblem] { card + server }

        /// All that `status` tells at a moment.
        ///
        /// `accepted`: when the server last took something. A device that it refused before may have been made known to it
        /// since; nobody asks again before the next boot.
        func all(at now: BootInstant, accepted: BootInstant? = nil) -> [CardProblem] {
            let isOver = accepted.map { $0.milliseconds >= asked ?? .max } ?? false
            let looks = begun ?? [:]
            let late = CardImport.Medium.allCases.filter { medium in
                looks[medium.rawValue].map { now.milliseconds - $0 >= medium.patience } ?? false
            }
            return card + (isOver ? [] : server) + late.map(\.notEnded)
        }

        fileprivate var isEmpty: Bool { found.isEmpty && (begun ?? [:]).isEmpty }

        static func read(in runtime: String) -> Problems {
            let text = SmallText.read(
                "\(runtime)/\(CardReport.fileName)",
                limit: 1 << 18,
                followsLink: false
            )
            return text.flatMap { try? JSONInput.decode(Self.self, from: Array($0.utf8)) }
                ?? Problems()
        }
    }

    let places: ImportPlaces
    let files: StepFiles
    let owner: ServiceOwner

    /// Notes that a look has begun: where it is killed, or hangs in a read, nobody else would tell.
    func begin(_ medium: CardImport.Medium, at now: BootInstant) {
        var problems = Problems.read(in: places.runtime)
        problems.begun = (problems.begun ?? [:]).merging([medium.rawValue: now.milliseconds]) { $1 }
        // Without the note the card is taken over all the same.
        try? writeForStatus(problems)
    }

    static func isOurs(_ name: String) -> Bool {
        name.lowercased() == Self.name
    }

    /// Tells of problems in place of those of before; nil leaves them.
    ///
    /// `ended`: the look that is over with this. `card`: a folder, where it can be told on the card. Returns all that is told now: what the card itself refuses comes with it.
    func tell(
        card new: [CardProblem]? = nil,
        server: [CardProblem]? = nil,
        ended: CardImport.Medium? = nil,
        on card: String?
    ) throws -> [CardProblem] {
        var problems = Problems.read(in: places.runtime)
        problems.card = new ?? problems.card
        if let server {
            problems.server = server
            problems.asked = server.isEmpty ? nil : SystemClock().now().milliseconds
        }
        if let ended { problems.begun?[ended.rawValue] = nil }
        if let card {
            do {
                try write(Self.text(problems.found), to: "\(card)/\(Self.name)")
            } catch let error as SystemError {
                problems.card.append(Self.refusal(error))
            }
        }
        try writeForStatus(problems)
        return problems.found
    }

    private static func refusal(_ error: SystemError) -> CardProblem {
        let remedy =
            switch error.code {
            case ENOSPC: "delete other files on the card"
            case EROFS: "slide its lock open, or check the card on a computer"
            default: "check the card on a computer"
            }
        return CardProblem(file: name, "cannot be written: \(error.reason)", remedy)
    }

    private func write(_ text: String, to path: String) throws {
        guard !text.isEmpty else { return try files.remove(path) }
        let old = try? SmallFile.read(path, limit: 1 << 18).bytes
        guard old != Array(text.utf8) else { return }
        // In place of the old one and not by a rename: without a journal that may leave two names for the same clusters,
        // and on a full card there is room for one alone. The next start mends what a power cut leaves.
        try files.write(path, text, mode: 0o644)
        try files.sync(folder(ofPath: path))
    }

    private func writeForStatus(_ problems: Problems) throws {
        let path = "\(places.runtime)/\(Self.fileName)"
        guard !problems.isEmpty else { return try files.remove(path) }
        places.makeRuntime(owner)
        // It is gone with the power, and made anew at each boot.
        try SmallFile.replace(
            path,
            encodedJSON(problems),
            mode: 0o644,
            owner: owner.ids,
            isSynced: false
        )
    }

    /// With returns, so that any editor shows its lines; the same for the same problems.
    private static func text(_ problems: [CardProblem]) -> String {
        guard !problems.isEmpty else { return "" }
        let lines =
            [
                "Something on this card needs a person. Where a file has an error, none of the files here",
                "is used, and what was in force before stays in force. Mend what is listed, save it, eject",
                "the card, and start the device with it again.",
                "This file goes away by itself when all is well.",
            ] + problems.flatMap(lines)
        return lines.map { $0 + "\r\n" }.joined()
    }

    private static func lines(_ problem: CardProblem) -> [String] {
        let place = problem.file.isEmpty ? "The card" : problem.file
        let line = problem.line.map { ", line \($0)" } ?? ""
        return [
            "", "\(place)\(line)", "  what is wrong: \(problem.what)",
            "  what to do:    \(problem.remedy)",
        ]
    }
}

extension CardImport.Medium {
    /// How long a look may take until it is told, in ms.
    ///
    /// The gateway waits for that of the card at a boot, and a look at a stick ends within the limit of its unit
    /// (`waypost-stick@.service`).
    fileprivate var patience: Int64 {
        switch self {
        case .card: 0
        case .stick: 90_000
        }
    }

    fileprivate var notEnded: CardProblem {
        let remedy =
            switch self {
            case .card: "it is tried again by itself; `journalctl -u waypost-import` says why"
            case .stick: "plug it in again, or check it on a computer"
            }
        let what = "the look at it did not end: it was stopped, or waits for a read"
        return CardProblem(file: name, what, remedy)
    }
}
