// Imports a configuration and secrets from a card's FAT partition or a stick, all or nothing.
import CLinux
import Configuration
import Glibc
import Host
import HTTP
import Setup
package import Status
import Upload

/// The result of an import.
package struct ImportOutcome: Sendable, Equatable {
    /// Names on the card of the files that came into force.
    package var imported: [String] = []
    /// Problems, as reported on the card and by `status`.
    package var problems: [CardFailure] = []
    /// The card's file system is not mounted; a retry may succeed, as a device may be slow or busy.
    package var isLater = false
}

/// One import: of the card at a boot, or of a stick when it is plugged in.
///
/// Needs no network, and changes nothing if the card has not changed.
package struct CardImport {
    package typealias Medium = ImportMedium

    private let path: String
    private let medium: Medium
    private let paths: ImportPaths
    private let files: StepFiles
    var clock: any HostClock = SystemClock()

    /// `path`: the folder on a card, or the mount point of a stick, whose folder `waypost` is read.
    package init(
        _ path: String,
        on medium: Medium = .card,
        into paths: ImportPaths,
        files: StepFiles = StepFiles()
    ) {
        (self.path, self.medium, self.paths, self.files) = (path, medium, paths, files)
    }

    /// Runs the import; an interrupted one continues at the next start.
    ///
    /// Throws a SystemError if problems cannot even be written for `status`.
    package func run() throws -> ImportOutcome {
        let owner = ServiceOwner(stateDirectory: paths.state)
        let report = CardReport(paths: paths, files: files, owner: owner)
        do {
            return try run(ImportJournal(paths: paths, files: files, owner: owner), report)
        } catch let error as SystemError {
            let problem = Self.notStored("what it holds", error)
            let card = medium == .card && isThere ? path : nil
            let reported = try report.record(card: [problem], ended: medium, on: card)
            return ImportOutcome(problems: reported)
        }
    }

    /// Returns the problem of a full or read-only disk of the device.
    private static func notStored(_ what: String, _ error: SystemError) -> CardFailure {
        let remedy = "make room on the device, or look at its own disk: `waypost doctor`"
        return CardFailure(file: "", "the device cannot store \(what): \(error)", remedy)
    }

    /// Reports problems in `status` alone, and the end of the import.
    private func record(_ report: CardReport, _ problems: [CardFailure]?) throws -> [CardFailure] {
        try report.record(card: problems, ended: medium, on: nil)
    }

    private func run(_ journal: ImportJournal, _ report: CardReport) throws -> ImportOutcome {
        try files.makeFolder(paths.folder, mode: 0o755)
        try files.makeFolder(paths.journal, mode: 0o700)
        return try journal.locked { try apply(journal, report) }
    }

    private func apply(_ journal: ImportJournal, _ report: CardReport) throws -> ImportOutcome {
        report.begin(medium, at: clock.now())
        // Importing overwrites secrets on the card; in memory only, a power cut would lose them.
        guard access(paths.notKept, F_OK) != 0 else { return try refuse(report) }
        try journal.finish()
        do {
            guard isThere else { return try missing(report) }
            guard let card = try open() else {
                // A stick without the folder is not for the gateway: report nothing.
                let reported = try record(report, medium == .card ? [] : nil)
                return ImportOutcome(problems: medium == .card ? reported : [])
            }
            return try look(card, journal, report)
        } catch let problem as CardFailure {
            return ImportOutcome(problems: try record(report, [problem]))
        }
    }

    /// Reports a missing file system.
    private func missing(_ report: CardReport) throws -> ImportOutcome {
        // A part of the system's own disk, already mounted read-only, is not mounted again.
        if medium == .stick, paths.isOwnDisk(path) {
            return ImportOutcome(problems: try record(report, nil))
        }
        let what = "its file system is not there or cannot be read"
        let remedy = "check it on a computer, or write it again"
        let problem = CardFailure(file: medium.name, what, remedy)
        let reported = try record(report, [problem])
        return ImportOutcome(problems: reported, isLater: medium == .card)
    }

    /// Changes nothing, and reports that the device has no storage that survives a power cut.
    private func refuse(_ report: CardReport) throws -> ImportOutcome {
        let what = "the device's data partition on it is missing or damaged: nothing would be kept"
        let remedy = "start the device again; if it stays so, write another card"
        let problem = CardFailure(file: "", what, remedy)
        let card = medium == .card && isThere ? path : nil
        let reported = try report.record(card: [problem], ended: medium, on: card)
        return ImportOutcome(problems: reported)
    }

    /// True if the medium is mounted, or is not expected to be.
    private var isThere: Bool {
        medium == .card && !paths.isListed(path) || paths.isMountPoint(path)
    }

    /// Returns the folder for this device; nil if there is none.
    private func open() throws -> CardFolder? {
        do {
            if medium == .card {
                return access(path, F_OK) == 0 || errno != ENOENT ? try CardFolder(path) : nil
            }
            let folder = try list(path).first { $0.lowercased() == "waypost" }
            guard let folder else { return nil }
            let permission = StickPermission(file: paths.configuration)
            guard permission.isGiven else { throw notAllowed(permission) }
            return try CardFolder("\(path)/\(folder)")
        } catch let error as SystemError {
            let what = "cannot be read: \(error.reason)"
            throw CardFailure(file: medium.name, what, "check it on a computer")
        }
    }

    /// Returns the problem that `import.stick` is off or cannot be read.
    private func notAllowed(_ permission: StickPermission) -> CardFailure {
        let own = paths.configuration
        let why =
            permission.fault.map { "cannot be read: \($0)" } ?? "is false"
        let what = "nothing on it is used: \(StickPermission.key) in \(own) \(why)"
        let remedy =
            "change the configuration on the device itself, or set \(StickPermission.key) = true there"
        return CardFailure(file: medium.name, what, remedy)
    }

    private func look(
        _ card: CardFolder,
        _ journal: ImportJournal,
        _ report: CardReport
    ) throws -> ImportOutcome {
        var (errors, notes) = (card.problems, [CardFailure]())
        var fresh = fresh(card, journal)
        let configuration = check(card, &errors, &notes)
        if medium == .card, let board = try recordBoard(configuration) { notes.append(board) }
        if let configuration {
            errors += Self.conflicts(configuration, fresh)
            errors += unkept(fresh)
            errors += addGivenAgain(card, configuration, &fresh)
            for (file, content) in fresh where file.isSecret {
                fresh[file]?.text = BoundSecret.text(content.text, for: configuration.upload.server)
            }
        }
        var outcome = ImportOutcome()
        if errors.isEmpty, !fresh.isEmpty {
            // A stick's configuration is not noted, so that the card's older one is not seen as a
            // change at the next boot.
            let isNoted = { medium == .card || $0 != CardFile.configuration }
            try journal.commit(fresh, noting: isNoted)
            try journal.finish()
            outcome.imported = fresh.values.map(\.name).sorted()
        }
        let left = try overwrite(card, fresh, isImported: errors.isEmpty)
        if medium == .card { errors += try recordLeft(left, of: card, journal) }
        let reported = errors + notes + left
        let server: [CardFailure]? = outcome.imported.isEmpty ? nil : []
        outcome.problems = try report.record(
            card: reported,
            server: server,
            ended: medium,
            on: card.path
        )
        return outcome
    }

    /// Stores which secrets are left on the card.
    ///
    /// A failure is one more problem; what was imported stays in force.
    private func recordLeft(
        _ left: [CardFailure],
        of card: CardFolder,
        _ journal: ImportJournal
    ) throws -> [CardFailure] {
        let secrets = card.contents.filter { _, content in
            left.contains { $0.file == content.name }
        }
        do {
            try journal.recordLeft(secrets)
            return []
        } catch let error as SystemError {
            return [Self.notStored("which secrets are left on it", error)]
        }
    }

    /// Checks and stores the board; a failure is reported and does not stop the import.
    private func recordBoard(_ configuration: Configuration?) throws -> CardFailure? {
        do {
            return try BoardNote(paths: paths, files: files).check(configuration)
        } catch let error as SystemError {
            return Self.notStored("which board it is in", error)
        }
    }

    private func fresh(_ card: CardFolder, _ journal: ImportJournal) -> [CardFile: CardContent] {
        let seen = journal.seen
        return card.contents.filter { file, content in
            if medium == .card, journal.isLeft(file, content) { return false }
            guard medium == .stick, file == .configuration else {
                return seen[file.rawValue] != content.digest || !paths.has(file)
            }
            let imported = try? SmallFile.read(paths.imported, limit: file.limit).bytes
            return imported != Array(content.text.utf8)
        }
    }

    // MARK: Checks

    /// Returns the card's configuration, or the one in force if the card has none.
    ///
    /// nil if the card's is wrong. Errors keep the whole card from being used, notes do not.
    private func check(
        _ card: CardFolder,
        _ errors: inout [CardFailure],
        _ notes: inout [CardFailure]
    ) -> Configuration? {
        guard let text = card.contents[.configuration] else { return paths.inForce }
        do throws(ConfigurationErrors) {
            let bytes = Array(text.text.utf8)
            let loaded = try Configuration.check(
                bytes,
                file: text.name,
                environment: [:],
                isFromCard: true
            )
            notes = loaded.warnings.map { CardFailure($0, in: text.name) }
            return loaded.values
        } catch {
            errors += error.problems.map { CardFailure($0, in: text.name) }
            return nil
        }
    }

    /// Reports new secrets without a configured server, and those that a key overrides.
    private static func conflicts(
        _ configuration: Configuration,
        _ fresh: [CardFile: CardContent]
    ) -> [CardFailure] {
        let upload = configuration.upload
        let isBucket = upload.destination == .s3
        let wanted: [CardFile] = isBucket ? [.keys] : [.token, .code]
        let target = isBucket ? "upload.bucket_url" : "upload.endpoint"
        let key = isBucket ? "upload.credentials_file" : "upload.token_file"
        let set = isBucket ? upload.credentialsFile : upload.tokenFile
        return fresh.filter { $0.key.isSecret }.compactMap { file, content in
            let name = content.name
            if !wanted.contains(file) {
                let what = "is not for upload.destination = \"\(upload.destination.rawValue)\""
                return CardFailure(file: name, what, "delete it, or set upload.destination")
            }
            if upload.target == nil {
                let what = "there is no server for it: \(target) is not set"
                return CardFailure(file: name, what, "write waypost.toml beside it, with that key")
            }
            guard set != nil else { return nil }
            return CardFailure(file: name, "\(key) is set and overrides it", "take \(key) out")
        }.sorted { $0.file < $1.file }
    }

    // MARK: Secrets

    /// Refuses a code on a device that stores in memory.
    ///
    /// A code can be exchanged once, and a power cut would lose the token.
    private func unkept(_ fresh: [CardFile: CardContent]) -> [CardFailure] {
        guard let code = fresh[.code], paths.isInMemory else { return [] }
        return [Self.notKept(code.name, "is not used")]
    }

    private static func notKept(_ name: String, _ what: String) -> CardFailure {
        CardFailure(
            file: name,
            "\(what): the device stores everything in memory, which is lost when the power fails",
            "end its overlay file system (`sudo raspi-config`, Performance Options), then start it again"
        )
    }

    /// Imports the card's secrets again if the stored ones are bound to another server.
    ///
    /// A stored secret is not valid for a new configuration. One that lies beside it on the card
    /// is, because a person has put both there.
    private func addGivenAgain(
        _ card: CardFolder,
        _ configuration: Configuration,
        _ fresh: inout [CardFile: CardContent]
    ) -> [CardFailure] {
        guard let text = fresh[.configuration],
            let other = StoredSecret.forAnother(than: configuration, paths)
        else { return [] }
        for (file, content) in card.contents where file.isSecret { fresh[file] = content }
        return fresh.keys.contains(where: \.isSecret) ? [] : [other.problem(text.name)]
    }

    /// Overwrites secrets on the card that the device has stored; a failure is a problem.
    private func overwrite(
        _ card: CardFolder,
        _ fresh: [CardFile: CardContent],
        isImported: Bool
    ) throws -> [CardFailure] {
        var secrets = card.halfOverwritten
        for (file, content) in card.contents where file.isSecret {
            if isImported || fresh[file] == nil { secrets.append((content.name, content.size)) }
        }
        let isKept = !paths.isInMemory
        return try secrets.sorted { $0.name < $1.name }.compactMap { name, size in
            do {
                guard isKept else { return Self.notKept(name, "stays here") }
                let bytes = CardSecret.overwriting(size)
                try files.overwrite("\(card.path)/\(name)", with: bytes)
                return nil
            } catch let error as SystemError {
                let what = "the device has it, but cannot overwrite it here: \(error.reason)"
                return CardFailure(file: name, what, "delete it on a computer")
            }
        }
    }
}
