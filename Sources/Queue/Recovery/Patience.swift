// Distinguishes temporary read errors from damage.
import SQLite

/// How to handle read errors of the disk.
enum Patience: Sendable {
    /// Throws them, to retry later: a disk can fail briefly.
    case waits
    /// Treats them as damage, after too many retries.
    case isOver

    /// Returns the result of `body`; nil if the data is damaged.
    func read<Value>(_ body: () throws -> Value) throws -> Value? {
        do {
            return try body()
        } catch let error as SQLiteError where error.isRefusal && self == .waits {
            throw error
        } catch let damage as DatabaseDamagedError {
            throw damage
        } catch {
            return nil
        }
    }
}

extension SQLiteError {
    /// A temporary disk error; it does not mean that stored data is damaged.
    var isRefusal: Bool { isDisk && !isDamage }

    /// Returns a disk error for an operation outside SQLite.
    static func refused(_ path: String) -> Self {
        SQLiteError(code: 10, message: "\(path): disk I/O error", statement: "")
    }
}
