// Brings a card's files into force atomically: a power cut leaves all of them or none.
import CLinux
import Glibc
import Host
import HTTP

/// Gathers files in a folder, renames the folder to commit, then moves the files into place.
///
/// Each step is idempotent. The next import first completes an interrupted one, without a card;
/// the gateway starts after that.
package struct ImportJournal {
    private static let seenName = "seen"

    let paths: ImportPaths
    let files: StepFiles
    let owner: ServiceOwner

    private var gathering: String { "\(paths.journal)/gathering" }
    private var done: String { "\(paths.journal)/done" }

    /// The digest of each file imported from a card, by name.
    var seen: [String: String] {
        let text = SmallText.read("\(paths.journal)/\(Self.seenName)") ?? ""
        let lines = text.split(separator: "\n").map { $0.split(separator: " ") }
        return Dictionary(
            lines.filter { $0.count == 2 }.map { (String($0[0]), String($0[1])) },
            uniquingKeysWith: { $1 }
        )
    }

    /// Runs `body` under an exclusive lock.
    ///
    /// A stick may be plugged in while the card is read or a server is asked.
    func locked<Value>(_ body: () throws -> Value) throws -> Value {
        let path = paths.journal
        let lock = try Descriptor(opening: path, O_RDONLY | O_DIRECTORY)
        guard flock(lock.number, LOCK_EX) == 0 else { throw SystemError.last("flock", on: path) }
        return try withExtendedLifetime(lock) { try body() }
    }

    /// Commits the files with its last step, a rename; stores the digests of those in `noting`.
    func commit(
        _ contents: [CardFile: CardContent],
        noting: (CardFile) -> Bool = { _ in true }
    ) throws {
        try clear(gathering)
        try files.makeFolder(gathering, mode: 0o700)
        var seen = seen
        for (file, content) in contents.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            try files.write("\(gathering)/\(file.rawValue)", content.text, mode: 0o600)
            if noting(file) { seen[file.rawValue] = content.digest }
        }
        try files.write("\(gathering)/\(Self.seenName)", Self.text(seen), mode: 0o600)
        try files.sync(gathering)
        try files.rename(gathering, to: paths.pending)
    }

    private static func text(_ seen: [String: String]) -> String {
        seen.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
    }

    // MARK: Secrets left on a card

    private static let left = "left:"

    /// Stores the digests of secrets that could not be overwritten on the card.
    func recordLeft(_ contents: [CardFile: CardContent]) throws {
        let before = seen
        var seen = before.filter { !$0.key.hasPrefix(Self.left) }
        for (file, content) in contents { seen[Self.left + file.rawValue] = content.digest }
        guard seen != before else { return }
        try files.replace("\(paths.journal)/\(Self.seenName)", Self.text(seen), mode: 0o600)
    }

    /// Returns whether a card's secret was left there earlier: one from a stick since is newer.
    ///
    /// False if the device has no such secret; then it imports the card's again.
    func isLeft(_ file: CardFile, _ content: CardContent) -> Bool {
        // Importing a code deletes the token until the code is exchanged.
        let stored = file == .token ? CardFile.code : file
        return seen[Self.left + file.rawValue] == content.digest && paths.has(stored)
    }

    // MARK: Into force

    /// Moves committed files into place; does nothing if there are none.
    func finish() throws {
        try clear(done)
        guard access(paths.pending, F_OK) == 0 else { return }
        paths.recordServiceIsBehind(owner)
        for file in CardFile.allCases {
            guard let bytes = try read("\(paths.pending)/\(file.rawValue)") else { continue }
            try put(file, String(decoding: bytes, as: UTF8.self))
        }
        if let seen = try read("\(paths.pending)/\(Self.seenName)") {
            let path = "\(paths.journal)/\(Self.seenName)"
            try files.replace(path, String(decoding: seen, as: UTF8.self), mode: 0o600)
        }
        try files.replace(paths.unverified, "", mode: 0o600)
        // Renamed before it is cleared, because half a folder would be half an import.
        try files.rename(paths.pending, to: done)
        try clear(done)
    }

    private func put(_ file: CardFile, _ text: String) throws {
        switch file {
        case .configuration:
            // It may hold keys of sensors: the service reads it as a member of its group.
            let group = owner.ids.map { FileOwner(user: 0, group: $0.group) }
            try files.replace(paths.imported, text, mode: 0o640, owner: group)
        case .token:
            try files.makeFolder(paths.credentials, mode: 0o700)
            try files.replace(paths.token, text + "\n", mode: 0o600)
            // A pending code is obsolete now.
            try files.remove(paths.code)
        case .keys:
            try files.makeFolder(paths.credentials, mode: 0o700)
            try files.replace(paths.keys, text + "\n", mode: 0o600)
        case .code:
            // The old token may be another server's and must not be sent to this one.
            try files.remove(paths.token)
            try files.replace(paths.code, text + "\n", mode: 0o600)
        }
    }

    /// Throws if a token could not be stored now, because exchanging uses up the code.
    func tryToStore() throws {
        try locked {
            try clear(gathering)
            try files.makeFolder(gathering, mode: 0o700)
            let room = String(repeating: " ", count: 4096)
            try files.write("\(gathering)/\(CardFile.token.rawValue)", room, mode: 0o600)
            try clear(gathering)
        }
    }

    /// Stores the token that `server` gave for a code, and deletes the code with it.
    ///
    /// Returns the mark to verify now. Throws and changes nothing if another card or stick was
    /// imported after `mark`.
    func store(token: String, for server: String?, after mark: Mark) throws -> Mark {
        let text = BoundSecret.text(token, for: server)
        let content = CardContent(name: "", text: text, size: 0, digest: "")
        return try locked {
            try finish()
            guard unverified == mark else { throw Self.overtaken }
            try commit([.token: content]) { _ in false }
            try finish()
            return unverified ?? mark
        }
    }

    // MARK: Verification by the server

    /// Identifies one import; differs after each.
    struct Mark: Equatable {
        fileprivate var inode: UInt
        fileprivate var seconds: Int
        fileprivate var nanoseconds: Int
    }

    /// The last import that the server has not verified; nil if there is none.
    var unverified: Mark? {
        var figures = stat()
        guard stat(paths.unverified, &figures) == 0 else { return nil }
        let time = figures.st_mtim
        return Mark(inode: figures.st_ino, seconds: time.tv_sec, nanoseconds: time.tv_nsec)
    }

    /// Records that the server has verified an import.
    ///
    /// Throws if another card or stick was imported after `mark`, which is not verified yet.
    func recordVerified(_ mark: Mark) throws {
        try locked {
            guard unverified == mark else { throw Self.overtaken }
            try files.remove(paths.unverified)
        }
    }

    private static var overtaken: Failure {
        Failure("another card or stick came meanwhile", code: .server)
    }

    private func read(_ path: String) throws(SystemError) -> [UInt8]? {
        do throws(SystemError) {
            return try SmallFile.read(path, limit: 1 << 18).bytes
        } catch {
            guard error.code == ENOENT else { throw error }
            return nil
        }
    }

    private func clear(_ folder: String) throws {
        for name in SystemFiles().names(in: folder) {
            try files.remove("\(folder)/\(name)")
        }
        try files.remove(folder)
    }
}
