// Makes rows of a batch in columns (waypost-protocol(7), COLUMNS).
import Host
import JSON
import ServerBase

/// A body has columns in the place of data.
struct IncomingColumns: Error {
    /// The range of the member, and of its value.
    let member: Range<Int>
    let value: Range<Int>

    /// The most bytes of columns; those of a gateway have 1 MiB at most.
    private static let largest = 2 << 20

    /// Writes the body to `output` with `data` in the place of its columns.
    ///
    /// Throws an HTTPError: 422 for columns that are not as they should be, 413 for more than `most`
    /// bytes of rows.
    func writeRows(
        of body: ByteView,
        to output: Spool,
        atMost most: Int,
        limit: WorkLimit
    ) throws {
        guard value.count <= Self.largest else {
            throw HTTPError(status: 413, reason: "columns of more than \(Self.largest >> 20) MiB")
        }
        var rows: ColumnRows
        do {
            var text = BodyJSON(body, at: value.lowerBound, limit: limit)
            rows = try ColumnRows(&text, atMost: most)
        } catch let fault as BodyError {
            throw ColumnRows.refusal("not an object of count and members: see byte \(fault.place)")
        } catch let error as RecordError {
            throw ColumnRows.refusal(error.reason)
        }
        try output.append(body[0..<member.lowerBound])
        try rows.write(of: body, to: output, limit)
        try output.append(body[member.upperBound..<body.count])
    }
}

/// The columns of a body, which are written as rows, one after another.
///
/// Nothing is made before all columns are checked, and time is linear in the rows.
struct ColumnRows {
    private static let mostColumns = 1000

    private let count: Int
    /// The most bytes of rows.
    private let most: Int
    private var columns: [IncomingColumn] = []

    static func refusal(_ reason: String) -> HTTPError {
        HTTPError(status: 422, reason: "columns: \(reason)")
    }

    fileprivate init(_ text: inout BodyJSON, atMost most: Int) throws {
        var count: Int64?
        var columns: [IncomingColumn] = []
        try text.object { text, name in
            switch JSONString.read(text.bytes, name) {
            case "count": count = try ColumnParts.integer(&text)
            case "members":
                try text.object { text, name in
                    guard columns.count < Self.mostColumns else {
                        throw Self.refusal("more than \(Self.mostColumns) members")
                    }
                    columns.append(try IncomingColumn(name, &text))
                }
            default: throw Self.refusal("a member beside count and members")
            }
        }
        guard let count, (0...Int64(most)).contains(count) else {
            throw Self.refusal("count is missing or not a count")
        }
        (self.count, self.columns, self.most) = (Int(count), columns, most)
        // A row has a comma and braces at least; a constant can be there a billion times, and a
        // member in no row costs a look at each.
        var least = 3 * self.count
        for place in columns.indices {
            let bytes = try self.columns[place].check(of: self.count, in: text.bytes)
            least += max(self.count, bytes)
        }
        guard least <= most else { throw tooLarge }
    }

    private var tooLarge: HTTPError {
        HTTPError(status: 413, reason: "the columns are more than \(most >> 20) MiB of rows")
    }

    fileprivate mutating func write(
        of body: ByteView,
        to output: Spool,
        _ limit: WorkLimit
    ) throws {
        var json = JSONWriter()
        json.key("data")
        json.append("[".utf8)
        for record in 0..<count {
            json.object {
                for place in columns.indices {
                    columns[place].write(record, of: body, to: &$0)
                }
            }
            if json.bytes.count >= 64 << 10 || record == count - 1 {
                try limit.check()
                guard output.count + json.bytes.count <= most else { throw tooLarge }
                try json.bytes.withUnsafeBytes(output.append)
                json.clear()
                if record < count - 1 { json.append(",".utf8) }
            }
        }
        mustHold(columns.allSatisfy(\.isWritten), "each value of a column is in a row")
        json.append("]".utf8)
        try json.bytes.withUnsafeBytes(output.append)
    }
}
