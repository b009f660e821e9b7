// Reports problems with a card, on the card itself and to `status`.
import Glibc
import Host
import JSON
import Status

/// Writes the report on the card and the one for `status`, each only when its text changes.
struct CardReport {
    private static let name = "waypost-errors.txt"

    let paths: ImportPaths
    let files: StepFiles
    let owner: ServiceOwner

    /// Records that an import has begun, so that `status` can report one that was killed or hangs.
    func begin(_ medium: ImportMedium, at now: BootInstant) {
        var problems = CardFailures.read(in: paths.runtime)
        problems.begun = (problems.begun ?? [:]).merging([medium.rawValue: now.milliseconds]) { $1 }
        // The import continues without the note.
        try? writeForStatus(problems)
    }

    static func isOurs(_ name: String) -> Bool {
        name.lowercased() == Self.name
    }

    /// Replaces the reported problems (nil leaves the earlier ones) and returns all current ones.
    ///
    /// `ended`: the import that ends with this. `card`: the folder for the report on the card, or
    /// nil; a failure to write there is one more problem.
    func record(
        card new: [CardFailure]? = nil,
        server: [CardFailure]? = nil,
        ended: ImportMedium? = nil,
        on card: String?
    ) throws -> [CardFailure] {
        var problems = CardFailures.read(in: paths.runtime)
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

    /// Writes the reported problems and one more, which is over at the next boot at the latest.
    func add(_ problem: CardFailure, on card: String) throws {
        let found = CardFailures.read(in: paths.runtime).found + [problem]
        try write(Self.text(found), to: "\(card)/\(Self.name)")
    }

    private static func refusal(_ error: SystemError) -> CardFailure {
        let remedy =
            switch error.code {
            case ENOSPC: "delete other files on the card"
            case EROFS: "slide its lock open, or check the card on a computer"
            default: "check the card on a computer"
            }
        return CardFailure(file: name, "cannot be written: \(error.reason)", remedy)
    }

    private func write(_ text: String, to path: String) throws {
        guard !text.isEmpty else { return try files.remove(path) }
        let old = try? SmallFile.read(path, limit: 1 << 18).bytes
        guard old != Array(text.utf8) else { return }
        // Overwrites the file instead of renaming: on FAT, without a journal, a rename may leave
        // two names for the same clusters, and a full card has room for only one file. After a
        // power cut the next start writes it again.
        try files.write(path, text, mode: 0o644)
        try files.sync(folder(ofPath: path))
    }

    private func writeForStatus(_ problems: CardFailures) throws {
        let path = "\(paths.runtime)/\(CardFailures.fileName)"
        guard !problems.isEmpty else { return try files.remove(path) }
        paths.makeRuntime(owner)
        // No fsync: the directory is in memory, and the file is rewritten at each boot.
        try SmallFile.replace(
            path,
            encodedJSON(problems),
            mode: 0o644,
            owner: owner.ids,
            isSynced: false
        )
    }

    /// Returns the text for the card, with CRLF for any editor; deterministic.
    private static func text(_ problems: [CardFailure]) -> String {
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

    private static func lines(_ problem: CardFailure) -> [String] {
        let place = problem.file.isEmpty ? "The card" : problem.file
        let line = problem.line.map { ", line \($0)" } ?? ""
        return [
            "", "\(place)\(line)", "  what is wrong: \(problem.what)",
            "  what to do:    \(problem.remedy)",
        ]
    }
}
