// Transactions, and statements with the values of a whole row.
import SQLite

extension Connection {
    /// Runs a statement once, with all its values.
    func perform(_ sql: String, row values: [any SQLValue]) throws {
        let statement = try prepare(sql)
        for (index, value) in values.enumerated() {
            try value.bind(to: statement, at: Int32(index + 1))
        }
        try statement.run()
    }

    /// Runs a transaction: committed when this returns, rolled back when it throws.
    func transaction<Value>(_ body: (borrowing Connection) throws -> Value) throws -> Value {
        try execute("BEGIN IMMEDIATE")
        do {
            let value = try body(self)
            try execute("COMMIT")
            return value
        } catch {
            // SQLite ends it by itself on some errors.
            if !isAutocommit { try? execute("ROLLBACK") }
            throw error
        }
    }
}
