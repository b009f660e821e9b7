// Creates, fills and reads tables of plain records by their columns.
import Host
import Records
import SQLite

/// The prepared statements that insert plain records, one per stream.
final class PlainTables {
    private struct Table: ~Copyable {
        let insert: Statement
        let columns: [Column]
        let hasSum: Bool
    }

    /// A box, because a dictionary cannot hold noncopyable values.
    private final class Box {
        let table: Table

        init(_ table: consuming Table) { self.table = table }
    }

    private var tables: [Stream: Box] = [:]

    /// Creates the table of a stream if it does not exist.
    func make(_ kind: StreamKind, _ connection: borrowing Connection) throws {
        guard case .plain(let columns) = kind.shape, tables[kind.stream] == nil else { return }
        var stored = columns.flatMap { column in column.stored.map { ($0, column.type) } }
        if kind.holdsText { stored.append(("sum", "INTEGER")) }
        let declared = stored.map { ", \($0.0) \($0.1)" }.joined()
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS \(kind.table)(id INTEGER PRIMARY KEY,
            boot INTEGER NOT NULL, boottime INTEGER NOT NULL, wall INTEGER NOT NULL\(declared))
            """
        )
        let names = stored.map { ", \($0.0)" }.joined()
        let marks = stored.map { _ in ",?" }.joined()
        let insert = try connection.prepare(
            "INSERT INTO \(kind.table)(id, boot, boottime, wall\(names)) VALUES (?,?,?,?\(marks))"
        )
        let table = Table(insert: insert, columns: columns, hasSum: kind.holdsText)
        tables[kind.stream] = Box(table)
    }

    /// Forgets the tables of new streams, which may not exist after a rollback.
    func forgetAll(but streams: StreamList) {
        for stream in tables.keys where streams[stream] == nil { tables[stream] = nil }
    }

    /// Inserts a record under a number; its stamp is of `boot`.
    func insert(_ row: PlainRow, _ sequence: Int64, boot: Int64) throws {
        guard let box = tables[row.stream] else {
            throw UnknownStreamError(name: row.stream.name)
        }
        try box.table.insert.bind(
            [sequence, boot, row.stamp.boot.milliseconds, row.stamp.wall.milliseconds],
            from: 1
        )
        var place: Int32 = 5
        for (column, value) in zip(box.table.columns, row.values) {
            try Self.bind(value, column, box.table.insert, &place, boot)
        }
        if box.table.hasSum { try box.table.insert.bind(Checksum.ofLong(row.values), at: place) }
        try box.table.insert.run()
    }

    private static func bind(
        _ value: ColumnValue,
        _ column: Column,
        _ insert: borrowing Statement,
        _ place: inout Int32,
        _ boot: Int64
    ) throws {
        switch (column.form, value) {
        case (.timestamp, _):
            return
        case (.moment, .moment(let its, let stamp)):
            try insert.bind(
                [its ?? boot, stamp.boot.milliseconds, stamp.wall.milliseconds],
                from: place
            )
            place += 2
        case (.moment, _):
            try insert.bind([nil, nil, nil], from: place)
            place += 2
        case (_, .text(let text)): try insert.bind(text, at: place)
        case (_, .bytes(let bytes)): try insert.bind(bytes, at: place)
        case (.scaled(let decimals), _): try insert.bind(value.scaled(decimals), at: place)
        default: try insert.bind(value.scaled(0), at: place)
        }
        place += 1
    }
}

extension Column {
    /// Reads the value in a row from column `place` on, and advances `place`.
    func value(_ row: borrowing Statement, _ place: inout Int32) -> ColumnValue {
        defer { place += Int32(stored.count) }
        switch form {
        case .timestamp: return .same
        case .moment:
            guard let boot = row.integer(place) else { return .none }
            return .moment(boot: boot, row.stamp(boottime: place + 1))
        case .text, .json: return row.isNull(place) ? .none : .text(row.text(place))
        case .members:
            // Text if Waypost wrote it, bytes if a user's program did.
            if row.isNull(place) { return .none }
            return row.isText(place) ? .text(row.text(place)) : .bytes(row.data(place))
        default: return row.integer(place).map { .integer($0) } ?? .none
        }
    }
}

/// A record names a stream that is not declared.
package struct UnknownStreamError: Error, Sendable, Equatable, CustomStringConvertible {
    package var name: String

    package var description: String { "no stream \"\(name)\" is declared" }
}
