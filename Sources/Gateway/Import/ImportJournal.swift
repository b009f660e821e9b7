// How a card's files come into force together: a power cut leaves all of them, or none.
import CLinux
import Glibc
import Host
import HTTP

/// Gathers files in a folder, and puts them into their places once the folder has its final name.
///
/// Each step may be repeated: whatever a power cut left undone, the next import does first, without a card. The
/// gateway starts after that.
struct ImportJournal {
    private static let seenName = "seen"

    let places: ImportPlaces
    let files: StepFiles
    let owner: ServiceOwner

    private var pending: String { places.pending }
    private var gathering: String { "\(places.journal)/gathering" }
    private var done: String { "\(places.journal)/done" }

    /// Of each file that was taken from a card, the digest.
    var seen: [String: String] {
        let text = SmallText.read("\(places.journal)/\(Self.seenName)") ?? ""
        let lines = text.split(separator: "\n").map { $0.split(separator: " ") }
        return Dictionary(
            lines.filter { $0.count == 2 }.map { (String($0[0]), String($0[1])) },
            uniquingKeysWith: { $1 }
        )
    }

    /// One import at a time: a stick may come while the card is read, or while a server is asked.
    func locked<Value>(_ body: () throws -> Value) throws -> Value {
        let path = places.journal
        let lock = try Descriptor(opening: path, O_RDONLY | O_DIRECTORY)
        guard flock(lock.number, LOCK_EX) == 0 else { throw SystemError.last("flock", on: path) }
        return try withExtendedLifetime(lock) { try body() }
    }

    /// From its last step on the files are the ones in force; those of `noting` are known again by their digests.
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
        try files.rename(gathering, to: pending)
    }

    private static func text(_ seen: [String: String]) -> String {
        seen.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
    }

    // MARK: What stays on a card

    private static let left = "left:"

    /// Secrets that the device has and could not overwrite on the card.
    func noteLeft(_ contents: [CardFile: CardContent]) throws {
        let before = seen
        var seen = before.filter { !$0.key.hasPrefix(Self.left) }
        for (file, content) in contents { seen[Self.left + file.rawValue] = content.digest }
        guard seen != before else { return }
        try files.replace("\(places.journal)/\(Self.seenName)", Self.text(seen), mode: 0o600)
    }

    /// Whether a secret of a card is one that was left there: what a stick has brought since is newer.
    ///
    /// Without any secret of its own the device takes it again.
    func isLeft(_ file: CardFile, _ content: CardContent) -> Bool {
        // A code takes the token away, and waits for another one.
        let stored = file == .token ? CardFile.code : file
        return seen[Self.left + file.rawValue] == content.digest && places.has(stored)
    }

    // MARK: Into force

    /// Puts what was committed into its places; does nothing where nothing was.
    func finish() throws {
        try clear(done)
        guard access(pending, F_OK) == 0 else { return }
        places.noteServiceIsBehind(owner)
        for file in CardFile.allCases {
            guard let bytes = try read("\(pending)/\(file.rawValue)") else { continue }
            try put(file, String(decoding: bytes, as: UTF8.self))
        }
        if let seen = try read("\(pending)/\(Self.seenName)") {
            let path = "\(places.journal)/\(Self.seenName)"
            try files.replace(path, String(decoding: seen, as: UTF8.self), mode: 0o600)
        }
        try files.replace(places.unverified, "", mode: 0o600)
        // Half a folder would be half an import.
        try files.rename(pending, to: done)
        try clear(done)
    }

    private func put(_ file: CardFile, _ text: String) throws {
        switch file {
        case .configuration:
            // Keys of sensors may stand in it: the service reads it as a member of its group.
            let group = owner.ids.map { FileOwner(user: 0, group: $0.group) }
            try files.replace(places.imported, text, mode: 0o640, owner: group)
        case .token:
            try files.makeFolder(places.credentials, mode: 0o700)
            try files.replace(places.token, text + "\n", mode: 0o600)
            // One that waits is needed no more.
            try files.remove(places.code)
        case .keys:
            try files.makeFolder(places.credentials, mode: 0o700)
            try files.replace(places.keys, text + "\n", mode: 0o600)
        case .code:
            // The token of before is another server's, perhaps: it must not be shown to this one.
            try files.remove(places.token)
            try files.replace(places.code, text + "\n", mode: 0o600)
        }
    }

    /// Throws where no token could be stored now: the code that is exchanged for one is used up by that.
    func tryToStore() throws {
        try locked {
            try clear(gathering)
            try files.makeFolder(gathering, mode: 0o700)
            let room = String(repeating: " ", count: 4096)
            try files.write("\(gathering)/\(CardFile.token.rawValue)", room, mode: 0o600)
            try clear(gathering)
        }
    }

    /// Stores the token that a code was good for at `server`; both change together.
    ///
    /// Returns what the server is to be asked about now. Throws, and changes nothing, where another card or stick came
    /// after `mark`.
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

    // MARK: What the server is to be asked

    /// Another one after each import.
    struct Mark: Equatable {
        fileprivate var inode: UInt
        fileprivate var seconds: Int
        fileprivate var nanoseconds: Int
    }

    /// Nil where nothing was imported that its server has not been asked about.
    var unverified: Mark? {
        var figures = stat()
        guard stat(places.unverified, &figures) == 0 else { return nil }
        let time = figures.st_mtim
        return Mark(inode: figures.st_ino, seconds: time.tv_sec, nanoseconds: time.tv_nsec)
    }

    /// The server was asked about what was imported.
    ///
    /// Throws where another card or stick came after `mark`: of that it was not.
    func noteVerified(_ mark: Mark) throws {
        try locked {
            guard unverified == mark else { throw Self.overtaken }
            try files.remove(places.unverified)
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
