// A disk that does not give something just now, told apart from damage.
import SQLite

/// What is done when the disk refuses to give what is stored on it.
enum Patience: Sendable {
    /// It is thrown, and asked for again later: a disk can fail for a moment.
    case waits
    /// It has refused too often, and counts as damaged.
    case isOver

    /// What `body` reads; nil where it is damaged.
    func read<Value>(_ body: () throws -> Value) throws -> Value? {
        do {
            return try body()
        } catch let error as SQLiteError where error.isRefusal && self == .waits {
            throw error
        } catch let damage as LiveDatabaseDamaged {
            throw damage
        } catch {
            return nil
        }
    }
}

extension SQLiteError {
    /// The disk did not give it just now; it says nothing about what is stored.
    var isRefusal: Bool { isDisk && !isDamage }

    /// Something beside SQLite's own work that the disk refused.
    static func refused(_ path: String) -> Self {
        SQLiteError(code: 10, message: "\(path): disk I/O error", statement: "")
    }
}
