// Times in exported records: local time, and the form that spreadsheets and databases read.
import Glibc
package import Host
import JSON

/// Converts the times of records, which are RFC 3339 in UTC.
struct ExportTimes {
    /// Returns the seconds east of UTC then; nil: times stay in UTC.
    let offset: (@Sendable (WallTime) -> Int)?

    /// Returns whether a member of a record is a time (waypost-protocol(7)).
    private static func isTime(_ name: String) -> Bool {
        ["timestamp", "timestamp_start", "timestamp_end", "start", "end"].contains(name)
            || name.hasSuffix("_at")
    }

    /// Returns a time for a table: a blank for the T; without an offset if it is local.
    func cell(_ name: String, _ text: String) -> String {
        guard Self.isTime(name), let time = WallTime(rfc3339: text) else { return text }
        let text = offset.map { local(time, $0).text } ?? text
        return text.prefix(10) + " " + text.dropFirst(11)
    }

    /// Returns a record whose times are local, with their offset; unchanged in UTC.
    func json(_ record: [UInt8]) -> [UInt8] {
        guard let offset else { return record }
        let members = RecordMembers(record).all
        // A record that cannot be split stays as it is.
        guard !members.isEmpty else { return record }
        var json = JSONWriter()
        json.object { object in
            for (name, value) in members {
                let time = Self.isTime(name) ? WallTime(rfc3339: RecordMembers.text(value)) : nil
                if let time {
                    object.field(name, stamp(time, offset))
                } else {
                    object.key(name)
                    object.raw(value)
                }
            }
        }
        return json.bytes
    }

    private func stamp(_ time: WallTime, _ offset: (WallTime) -> Int) -> String {
        let (text, minutes) = local(time, offset)
        let hours = two(minutes.magnitude / 60) + ":" + two(minutes.magnitude % 60)
        return text + (minutes < 0 ? "-" : "+") + hours
    }

    private func two(_ number: UInt) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private func local(
        _ time: WallTime,
        _ offset: (WallTime) -> Int
    ) -> (text: String, minutes: Int) {
        // RFC 3339 has no seconds in an offset; local mean times of the nineteenth century had.
        let minutes = offset(time) / 60
        let shifted = time + .seconds(minutes * 60)
        return (String(shifted.rfc3339.dropLast()), minutes)
    }
}

extension WallTime {
    /// Returns the seconds east of UTC at a time in this process's time zone (localtime(3)).
    package static func localOffset(at time: WallTime) -> Int {
        var seconds = time_t(time.milliseconds.floorDivided(by: 1000))
        var parts = tm()
        return localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
    }
}
