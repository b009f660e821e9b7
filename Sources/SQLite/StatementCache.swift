// A cache of prepared statements: compiling one costs more than running it.
import CSQLite

/// The unused prepared statements of one connection, by their SQL.
///
/// Used by the connection's thread only.
final class StatementCache {
    /// Each statement takes about three kilobytes.
    private static let limit = 64

    private var statements: [String: OpaquePointer] = [:]
    private var isClosed = false

    /// Removes and returns a statement with nothing bound; nil if there is none.
    func take(_ sql: String) -> OpaquePointer? { statements.removeValue(forKey: sql) }

    /// Resets an unused statement and keeps it.
    func put(_ statement: OpaquePointer, _ sql: String) {
        guard !isClosed, statements[sql] == nil else {
            sqlite3_finalize(statement)
            return
        }
        sqlite3_reset(statement)
        sqlite3_clear_bindings(statement)
        // SQL with literal numbers would fill the cache with statements that are never used again.
        if statements.count >= Self.limit { clear() }
        statements[sql] = statement
    }

    /// Finalises all statements; the connection is closing.
    func close() {
        isClosed = true
        clear()
    }

    private func clear() {
        for statement in statements.values { sqlite3_finalize(statement) }
        statements.removeAll(keepingCapacity: true)
    }
}
