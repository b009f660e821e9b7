// Statements that were prepared before: compiling one costs more than running it.
import CSQLite

/// The statements of one connection that nobody uses now, each under its text.
///
/// Used by the connection's thread only.
final class StatementCache {
    /// Each is some three kilobytes.
    private static let limit = 64

    private var statements: [String: OpaquePointer] = [:]
    private var isClosed = false

    /// One that is ready to run, with nothing bound; nil where there is none.
    func take(_ sql: String) -> OpaquePointer? { statements.removeValue(forKey: sql) }

    /// Keeps a statement that nobody uses any more.
    func put(_ statement: OpaquePointer, _ sql: String) {
        guard !isClosed, statements[sql] == nil else {
            sqlite3_finalize(statement)
            return
        }
        sqlite3_reset(statement)
        sqlite3_clear_bindings(statement)
        // Texts with numbers in them would fill it with what is never asked again.
        if statements.count >= Self.limit { clear() }
        statements[sql] = statement
    }

    /// The connection is closing.
    func close() {
        isClosed = true
        clear()
    }

    private func clear() {
        for statement in statements.values { sqlite3_finalize(statement) }
        statements.removeAll(keepingCapacity: true)
    }
}
