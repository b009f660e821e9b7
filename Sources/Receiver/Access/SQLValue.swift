// Statements with their parameters in one call.
import SQLite

/// A parameter of a statement: an integer, a text, bytes, or nil for NULL.
protocol SQLValue {
    func bind(to row: borrowing Statement, at index: Int32) throws
}

extension Int64: SQLValue {
    func bind(to row: borrowing Statement, at index: Int32) throws { try row.bind(self, at: index) }
}

extension String: SQLValue {
    func bind(to row: borrowing Statement, at index: Int32) throws { try row.bind(self, at: index) }
}

extension [UInt8]: SQLValue {
    func bind(to row: borrowing Statement, at index: Int32) throws { try row.bind(self, at: index) }
}

extension Optional: SQLValue where Wrapped: SQLValue {
    func bind(to row: borrowing Statement, at index: Int32) throws {
        // A parameter without a value is NULL.
        try self?.bind(to: row, at: index)
    }
}

extension Connection {
    /// Prepares a statement and binds its parameters in order.
    func query(_ sql: String, _ values: any SQLValue...) throws -> Statement {
        try query(sql, values)
    }

    /// Runs one statement that returns nothing.
    func perform(_ sql: String, _ values: any SQLValue...) throws {
        try query(sql, values).run()
    }

    /// Returns what `read` makes of each row.
    func rows<Row>(
        _ sql: String,
        _ values: any SQLValue...,
        read: (borrowing Statement) throws -> Row
    ) throws -> [Row] {
        let row = try query(sql, values)
        var rows: [Row] = []
        while try row.step() { rows.append(try read(row)) }
        return rows
    }

    private func query(_ sql: String, _ values: [any SQLValue]) throws -> Statement {
        let row = try prepare(sql)
        for (index, value) in values.enumerated() { try value.bind(to: row, at: Int32(index + 1)) }
        return row
    }
}
