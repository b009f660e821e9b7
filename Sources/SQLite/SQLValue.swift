// The types that a statement takes as parameters.

/// A value for a parameter of a statement.
package protocol SQLValue {
    func bind(to statement: borrowing Statement, at index: Int32) throws(SQLiteError)
}

extension Int64: SQLValue {
    package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(self, at: index)
    }
}

extension Int: SQLValue {
    package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(Int64(self), at: index)
    }
}

extension Double: SQLValue {
    package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(self, at: index)
    }
}

extension String: SQLValue {
    package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(self, at: index)
    }
}

extension [UInt8]: SQLValue {
    package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLiteError) {
        try statement.bind(self, at: index)
    }
}
