// Writes plain records as JSON: their columns in order.
package import Host
package import JSON

/// When a record was captured, and how far that time can be trusted.
package typealias Moment = (wall: WallTime, quality: ClockQuality)

extension RecordJSON {
    /// Writes one record; `values` has one stored value per column.
    ///
    /// `id`: nil to leave it out. `seen` is the wall clock at capture. `resolve` returns the time of a point in a boot.
    package static func write(
        _ columns: [Column],
        _ values: [ColumnValue],
        id: String?,
        at moment: Moment,
        seen: WallTime,
        to json: inout JSONWriter,
        resolve: (_ boot: Int64?, Stamp) -> WallTime
    ) {
        let wall = givenTime(columns, values, resolve: resolve) ?? moment.wall
        json.object {
            if let id { $0.field("id", id) }
            $0.field("timestamp", wall)
            for (column, value) in zip(columns, values) {
                guard let key = column.key else { continue }
                if column.form == .timestamp {
                    $0.field(key, wall)
                } else if case .moment(let boot, let stamp) = value {
                    $0.field(key, resolve(boot, stamp))
                } else if case .text(let text) = value, column.form == .json {
                    $0.key(key)
                    $0.raw(EventDetail.dated(text, seen: seen, right: moment.wall))
                } else {
                    write(value, as: column.form, key, to: &$0)
                }
            }
            $0.field("clock", moment.quality.rawValue)
        }
    }

    /// Returns the time that the sending program gave for the record, or that a column has.
    package static func givenTime(
        _ columns: [Column],
        _ values: [ColumnValue],
        resolve: (_ boot: Int64?, Stamp) -> WallTime
    ) -> WallTime? {
        for (column, value) in zip(columns, values) {
            switch value {
            case .integer(let time) where column.form == .given:
                return WallTime(milliseconds: time)
            case .moment(let boot, let stamp) where column.isTimestamp: return resolve(boot, stamp)
            default: continue
            }
        }
        return nil
    }

    private static func write(
        _ value: ColumnValue,
        as form: Column.Form,
        _ key: String,
        to json: inout JSONWriter
    ) {
        switch (form, value) {
        case (.scaled(let decimals), .integer(let integer)):
            json.field(key, scaled: integer, decimals: decimals)
        case (.choice(let words), .integer(let code)):
            json.field(key, words[code] ?? "\(code)")
        case (.integer, .integer(let integer)): json.field(key, integer)
        case (.members, .text(let object)):
            // Without the object's braces: the other members follow.
            if object.utf8.count > 2 { json.raw(String(object.dropFirst().dropLast())) }
        case (.members, .bytes(let bytes)): if !bytes.isEmpty { json.raw(bytes) }
        case (_, .text(let text)): json.field(key, text)
        default: break
        }
    }
}
