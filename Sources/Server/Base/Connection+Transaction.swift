// Transactions, and queries of several rows.
package import SQLite

extension Connection {
    /// Returns the results of `read` for the rows, without nil.
    package func rows<Row>(
        _ sql: String,
        _ values: (any SQLValue)?...,
        read: (borrowing Statement) throws -> Row?
    ) throws -> [Row] {
        let statement = try prepare(sql)
        try statement.bind(values, from: 1)
        return try statement.compactMap(read)
    }

    /// Runs a transaction: committed when this returns, rolled back when it throws.
    package func transaction<Value>(_ body: (borrowing Connection) throws -> Value) throws -> Value
    {
        try execute("BEGIN IMMEDIATE")
        do {
            let value = try body(self)
            try execute("COMMIT")
            return value
        } catch {
            // SQLite rolls back by itself on some errors.
            if !isAutocommit { try? execute("ROLLBACK") }
            throw error
        }
    }
}
