// Small texts that other parts of the gateway store across restarts, next to the records.
import SQLite
import Synchronization

/// Named texts: the newest value of each, and which are not in the database yet.
///
/// A memo does not cause a commit: it is written with the next one, at the latest at shutdown.
final class Memos: Sendable {
    private struct Content {
        var values: [String: String] = [:]
        var unwritten: Set<String> = []
    }

    private let content = Mutex(Content())

    subscript(name: String) -> String? { content.withLock { $0.values[name] } }

    func set(_ name: String, _ value: String) {
        content.withLock { content in
            guard content.values[name] != value else { return }
            content.values[name] = value
            content.unwritten.insert(name)
        }
    }

    /// Records that a record's transaction stores these memos, and whether it is committed.
    func areStored(_ memos: [String: String], isCommitted: Bool) {
        content.withLock { content in
            content.unwritten.subtract(memos.keys)
            if isCommitted { content.values.merge(memos) { $1 } }
        }
    }

    /// The memos to write with a commit; confirm it with `written`.
    var unwritten: [String: String] {
        content.withLock { content in content.values.filter { content.unwritten.contains($0.key) } }
    }

    func written(_ values: [String: String]) {
        content.withLock { content in
            for (name, value) in values where content.values[name] == value {
                content.unwritten.remove(name)
            }
        }
    }

    /// Merges the memos of a newly opened database; newer values win and are written to it.
    func opened(_ stored: [String: String]) {
        content.withLock { content in
            content.values.merge(stored) { newer, _ in newer }
            content.unwritten = Set(
                content.values.filter { stored[$0.key] != $0.value }.map(\.key)
            )
        }
    }
}

extension Writer {
    func memos() throws -> [String: String] {
        let rows = try connection.prepare("SELECT name, value FROM memos")
        var memos: [String: String] = [:]
        while try rows.step() { memos[rows.text(0)] = rows.text(1) }
        return memos
    }

    func record(memos: [String: String]) throws {
        for (name, value) in memos {
            try begin()
            try connection.run("INSERT OR REPLACE INTO memos VALUES (?,?)", name, value)
        }
    }
}
