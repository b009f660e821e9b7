// The columns of plain records: how each is stored and written as JSON.
package import Host

/// One column of a plain record.
package struct Column: Sendable {
    package enum Form: Sendable, Equatable {
        case integer
        /// A number, stored as the integer count of `10^-decimals`.
        case scaled(decimals: Int)
        case text
        /// A code for one of these words.
        case choice([Int64: String])
        /// Text that is already a JSON value: the detail of an event.
        case json
        /// Members of the record's JSON object: the text of an object, or bytes without its braces.
        case members
        /// A point in time of a boot, in three columns.
        case moment
        /// The record's own timestamp under another key; not stored a second time.
        case timestamp
        /// A time in ms that the sending program gave, in place of the time of acceptance.
        case given
    }

    /// Its name in the table.
    package let name: String
    /// Its key in JSON; nil if it is not sent.
    package let key: String?
    package let form: Form
    /// The record's timestamp on the wire is this point in time, not that of its capture.
    package let isTimestamp: Bool
    /// The span that the record is about begins or ends at this point in time.
    package let isSpanEnd: Bool

    package init(
        _ name: String,
        key: String?,
        _ form: Form,
        isTimestamp: Bool = false,
        isSpanEnd: Bool = false
    ) {
        (self.name, self.key, self.form) = (name, key, form)
        (self.isTimestamp, self.isSpanEnd) = (isTimestamp, isSpanEnd)
    }

    package static func integer(_ name: String, as key: String? = nil) -> Self {
        Self(name, key: key ?? name, .integer)
    }

    package static func number(_ name: String, as key: String? = nil, decimals: Int) -> Self {
        Self(name, key: key ?? name, .scaled(decimals: decimals))
    }

    package static func text(_ name: String) -> Self { Self(name, key: name, .text) }

    package static func choice(_ name: String, as key: String, _ words: [Int64: String]) -> Self {
        Self(name, key: key, .choice(words))
    }

    package static func json(_ name: String) -> Self { Self(name, key: name, .json) }

    package static func members(_ name: String) -> Self { Self(name, key: name, .members) }

    package static func moment(_ name: String) -> Self { Self(name, key: name, .moment) }

    package static func spanEnd(_ name: String, isTimestamp: Bool = false) -> Self {
        Self(name, key: name, .moment, isTimestamp: isTimestamp, isSpanEnd: true)
    }

    /// A column that is stored but not sent.
    package static func hidden(_ name: String, _ form: Form = .integer) -> Self {
        Self(name, key: nil, form)
    }

    /// The table columns that store it.
    package var stored: [String] {
        switch form {
        case .moment: ["\(name)_boot", "\(name)_boottime", "\(name)_wall"]
        case .timestamp: []
        default: [name]
        }
    }

    /// Its type in SQLite.
    package var type: String {
        switch form {
        case .integer, .scaled, .choice, .moment, .timestamp, .given: "INTEGER"
        case .text, .json: "TEXT"
        case .members: "BLOB"
        }
    }
}

/// The value of one column in one record.
package enum ColumnValue: Sendable, Equatable {
    /// Unknown: absent in JSON.
    case none
    case integer(Int64)
    case number(Double)
    case text(String)
    case bytes([UInt8])
    /// `boot` is nil for the boot in which the record is stored.
    case moment(boot: Int64?, Stamp)
    /// The value of a column that is not stored.
    case same

    package init(_ value: Double?) { self = value.map { .number($0) } ?? .none }
    package init(_ value: Int?) { self = value.map { .integer(Int64($0)) } ?? .none }

    /// Returns the integer to store with `decimals`; nil for no value and for one too large.
    package func scaled(_ decimals: Int) -> Int64? {
        switch self {
        case .integer(let integer): return integer
        case .number(let number):
            var factor = 1.0
            for _ in 0..<decimals { factor *= 10 }
            let scaled = (number * factor).rounded(.toNearestOrAwayFromZero)
            return abs(scaled) < 9e15 ? Int64(scaled) : nil
        default: return nil
        }
    }
}
