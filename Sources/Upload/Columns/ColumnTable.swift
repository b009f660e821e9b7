// The records of a batch as columns (waypost-protocol(7), COLUMNS).
import JSON

/// Rows of JSON, taken apart into one column per member.
///
/// The server makes the same rows of it again, byte for byte. That is why a table is made of the
/// JSON of the rows, whatever their stream is.
struct ColumnTable {
    /// The most bytes of rows in one table; a table takes as much memory until it is written.
    static let largest = 1 << 20
    /// More members than this have other things than rows in common.
    private static let mostColumns = 256

    /// A row that columns do not carry exactly: the batch is sent in rows.
    struct UnfitRowError: Error {}

    private var columns: [TableColumn] = []
    private(set) var count = 0

    /// Adds a row; white space between its tokens, which no writer of the queue leaves, may be lost.
    ///
    /// Throws `UnfitRowError` for names that are escaped or appear twice, and for members in another
    /// order than before.
    mutating func append(_ row: [UInt8]) throws {
        try row.withUnsafeBytes { bytes in
            var members = RowMembers(TextBytes(bytes))
            var place = 0
            while !members.isAtEnd {
                // Most rows have the members of the row before.
                let isNext = place < columns.count && members.skip(columns[place].name)
                if !isNext { place = try self.place(of: members.name(), from: place) }
                columns[place].append(members.value(), at: count)
                place += 1
            }
        }
        count += 1
    }

    /// Returns the column of a member, which is made where the row has it.
    private mutating func place(of name: TextBytes, from place: Int) throws -> Int {
        if let found = columns.firstIndex(where: { $0.isNamed(name) }) {
            guard found >= place else { throw UnfitRowError() }
            return found
        }
        guard columns.count < Self.mostColumns else { throw UnfitRowError() }
        columns.insert(TableColumn(name: Array(name.bytes)), at: place)
        return place
    }

    /// The value of `columns`.
    func json() -> [UInt8] {
        let contents = columns.map { $0.content() }
        // A column may follow from one with more values, as a beacon's kind does from its address.
        let leaders = contents.compactMap(\.words).filter { $0.places.count == count }
            .sorted { $0.firsts.count > $1.firsts.count }
        var json = JSONWriter()
        json.object {
            $0.field("count", Int64(count))
            $0.key("members")
            $0.object { json in
                for (column, content) in zip(columns, contents) {
                    column.name.withUnsafeBytes { json.key(raw: $0) }
                    column.write(content, of: count, leaders, to: &json)
                }
            }
        }
        return json.bytes
    }
}

/// The members of one JSON object without white space between them, in order.
private struct RowMembers {
    private let row: TextBytes
    private var at = 1

    init(_ row: TextBytes) { self.row = row }

    var isAtEnd: Bool { at >= row.count - 1 }

    /// Goes to the value of a member, if the next one has this name, with its quotes.
    mutating func skip(_ name: [UInt8]) -> Bool {
        let end = at + name.count
        guard end < row.count, row[end] == UInt8(ascii: ":"),
            name.withUnsafeBytes({ TextBytes($0) == row[at..<end] })
        else { return false }
        at = end + 1
        return true
    }

    /// Returns the next name, with its quotes, and goes to its value.
    mutating func name() throws -> TextBytes {
        let end = endOfString(from: at)
        let name = row[at..<end]
        guard row[at] == UInt8(ascii: "\""), end < row.count - 1, row[end] == UInt8(ascii: ":"),
            name.first(UInt8(ascii: "\\")) == nil
        else { throw ColumnTable.UnfitRowError() }
        at = end + 1
        return name
    }

    /// Returns the value, and goes behind the comma after it.
    mutating func value() -> TextBytes {
        let value = row[at..<endOfValue(from: at)]
        at += value.count + 1
        return value
    }

    /// Returns the place behind the string that begins at `start`.
    private func endOfString(from start: Int) -> Int {
        var place = start + 1
        while let quote = row.first(UInt8(ascii: "\""), from: place) {
            var first = quote
            while first > place, row[first - 1] == UInt8(ascii: "\\") { first -= 1 }
            // Every second backslash is one that is escaped itself.
            if (quote - first) % 2 == 0 { return quote + 1 }
            place = quote + 1
        }
        return row.count
    }

    private func endOfValue(from start: Int) -> Int {
        var depth = 0
        var place = start
        while place < row.count {
            switch row[place] {
            case UInt8(ascii: "\""):
                place = endOfString(from: place)
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return place }
                depth -= 1
            case UInt8(ascii: ",") where depth == 0: return place
            default: break
            }
            place += 1
        }
        return place
    }
}
