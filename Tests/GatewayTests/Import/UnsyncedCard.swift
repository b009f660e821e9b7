// A simulated FAT card without a journal, as a power cut leaves it.
import Foundation

/// Unsynced writes may have reached the card or not, each sector and each name independently.
///
/// The allocation table is not simulated: an fsync writes it with the file. If its entries are
/// missing, fsck.vfat, which runs before the card is mounted, makes an empty file, which is among
/// the outcomes. A stick is not checked: one pulled out at that instant may hold an unreadable file
/// until a computer repairs it.
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

    /// Called when an fsync of a file or the folder has returned.
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

    /// All states that a power cut now may leave: names with their content.
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

    /// nil means that the file does not exist.
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
        // With another size, the directory entry and the clusters may be either.
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
