// Writes plain records as JSON: their columns in order.
package import Host
package import JSON

/// When a record was captured, and how far that time can be trusted.
package typealias Moment = (wall: WallTime, quality: ClockQuality)

extension RecordJSON {
    /// Writes one record; `values` has one stored value per column.
    ///
    /// `id`: nil to leave it out. `seen` is the wall clock at capture. `resolve` returns the best
    /// known time of a point in a boot. `clock` is that of the worse end of the record's span.
    package static func write(
        _ columns: [Column],
        _ values: [ColumnValue],
        id: String?,
        at moment: Moment,
        seen: WallTime,
        to json: inout JSONWriter,
        resolve: (_ boot: Int64?, Stamp) -> Moment
    ) {
        let wall = givenTime(columns, values, resolve: resolve) ?? moment.wall
        var ends = spanEnds(columns, values, resolve: resolve)
        // The record of a span that has both ends may be captured long after it.
        let qualities = ends.map(\.quality) + (ends.count > 1 ? [] : [moment.quality])
        json.object {
            if let id { $0.field("id", id) }
            $0.field("timestamp", wall)
            for (column, value) in zip(columns, values) {
                guard let key = column.key else { continue }
                if column.form == .timestamp {
                    $0.field(key, wall)
                } else if case .moment(let boot, let stamp) = value {
                    let time = column.isSpanEnd ? ends.removeFirst() : resolve(boot, stamp)
                    $0.field(key, time.wall)
                } else if case .text(let text) = value, column.form == .json {
                    $0.key(key)
                    $0.raw(EventDetail.dated(text, seen: seen, right: moment.wall))
                } else {
                    write(value, as: column.form, key, to: &$0)
                }
            }
            $0.field("clock", qualities.reduce(ClockQuality.synced) { $0.worse($1) }.rawValue)
        }
    }

    /// Returns the best known times of the ends of a record's span.
    ///
    /// A span of one boot is as long as boot time says: the clock may have been set within it. No
    /// span ends before it begins, also where the clock of one of its boots was never set.
    private static func spanEnds(
        _ columns: [Column],
        _ values: [ColumnValue],
        resolve: (_ boot: Int64?, Stamp) -> Moment
    ) -> [Moment] {
        var first: (boot: Int64?, stamp: Stamp, wall: WallTime)?
        return zip(columns, values).compactMap { column, value in
            guard column.isSpanEnd, case .moment(let boot, let stamp) = value else { return nil }
            var end = resolve(boot, stamp)
            if let first {
                let length = (stamp.boot - first.stamp.boot).milliseconds
                let right = first.wall + .milliseconds(length)
                let error = (end.wall.milliseconds &- right.milliseconds).magnitude
                if boot == first.boot, error > ClockMap.tolerance(length) { end.wall = right }
                end.wall = max(end.wall, first.wall)
            }
            first = first ?? (boot, stamp, end.wall)
            return end
        }
    }

    /// Returns the time that the sending program gave for the record, or that a column has.
    package static func givenTime(
        _ columns: [Column],
        _ values: [ColumnValue],
        resolve: (_ boot: Int64?, Stamp) -> Moment
    ) -> WallTime? {
        for (column, value) in zip(columns, values) {
            switch value {
            case .integer(let time) where column.form == .given:
                return WallTime(milliseconds: time)
            case .moment(let boot, let stamp) where column.isTimestamp:
                return resolve(boot, stamp).wall
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
