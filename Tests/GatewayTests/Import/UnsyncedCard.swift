// A card without a journal (FAT), as the power leaves it.
import Foundation

/// What was written and not synced may have reached the card or not: each sector and each name by itself.
///
/// The allocation table is not in it. An fsync writes it with the file; of a file whose entries in it are missing,
/// fsck.vfat, which runs before the card is mounted, makes an empty one, which is among the outcomes. A stick is not checked before:
/// one pulled out in that instant may keep a file that cannot be read, until a computer repairs it.
final class UnsyncedCard {
    private let path: String
    private var names: Set<String> = []
    private var contents: [String: [UInt8]] = [:]

    private static let sector = 512
    private static let garbage: UInt8 = 0xF6

    init(_ path: String) throws {
        self.path = path
        try sync(path)
    }

    /// A file's or the folder's fsync returned.
    func sync(_ synced: String) throws {
        let now = try present()
        if synced == path {
            names = Set(now.keys)
            for (name, bytes) in now where contents[name] == nil { contents[name] = bytes }
        } else {
            let name = String(synced.dropFirst(path.count + 1))
            contents[name] = now[name]
        }
        contents = contents.filter { names.contains($0.key) || now[$0.key] != nil }
    }

    /// All that may lie there if the power fails now: names with their content.
    func outcomes() throws -> [[String: [UInt8]]] {
        let now = try present()
        var all: [[String: [UInt8]]] = [[:]]
        for name in names.union(now.keys).sorted() {
            let options = self.options(name, now[name])
            all = all.flatMap { before in
                options.map { before.merging($0.map { [name: $0] } ?? [:]) { $1 } }
            }
        }
        return all
    }

    private func present() throws -> [String: [UInt8]] {
        let files = try FileManager.default.contentsOfDirectory(atPath: path)
        return try Dictionary(
            uniqueKeysWithValues: files.map {
                ($0, Array(try Data(contentsOf: URL(fileURLWithPath: "\(path)/\($0)"))))
            }
        )
    }

    /// nil: it is not there.
    private func options(_ name: String, _ now: [UInt8]?) -> [[UInt8]?] {
        let synced = contents[name]
        guard names.contains(name) else {
            guard let now else { return [nil] }
            if synced == now { return [nil, now] }
            let nothing = [UInt8](repeating: Self.garbage, count: now.count)
            return [nil, []] + Self.mixtures(nothing, now)
        }
        guard let now else { return [nil, synced] }
        guard let synced, synced != now else { return [now] }
        // Another size: the entry in the folder, and the clusters, may be either.
        return synced.count == now.count ? Self.mixtures(synced, now) : [synced, now, []]
    }

    private static func mixtures(_ old: [UInt8], _ new: [UInt8]) -> [[UInt8]] {
        let starts = Array(stride(from: 0, to: new.count, by: sector))
        return (0..<(1 << starts.count)).map { choice in
            starts.enumerated().flatMap { index, start in
                (choice >> index & 1 == 0 ? old : new)[start..<min(start + sector, new.count)]
            }
        }
    }
}
