// The writer's part for bytes on the wire: a sum a day (UTC), for a week.
package import Host
import Records
import SQLite

/// The bytes of one day, counted in days since 1970-01-01 UTC.
package struct DayTraffic: Sendable, Equatable {
    package var day: Int64
    package var traffic: Traffic
}

extension WallTime {
    /// Days since 1970-01-01 UTC.
    package var utcDay: Int64 { milliseconds.floorDivided(by: 86_400_000) }
}

extension Writer {
    /// Days that are kept, today included.
    package static let trafficDays: Int64 = 7
    /// Rows that a clock which was never right can leave at most.
    private static let trafficRows: Int64 = 32

    /// Adds bytes to a day, or takes some back.
    func note(_ day: DayTraffic) throws {
        try begin()
        try connection.run(
            """
            INSERT INTO traffic VALUES (?1,max(0,?2),max(0,?3)) ON CONFLICT(day) DO UPDATE SET
            sent=max(0,sent+?2), received=max(0,received+?3)
            """,
            day.day,
            day.traffic.sent,
            day.traffic.received
        )
    }

    /// Adds bytes to the day it is; below zero, takes them back.
    package func note(_ traffic: Traffic) throws {
        guard traffic != Traffic() else { return }
        // As records are dated: what the board's own clock shows may stay wrong though the time is known.
        let today = rightTime.utcDay
        try note(DayTraffic(day: today, traffic: traffic))
        // A time that nobody vouched for may be of any day: it deletes none.
        if memory.bootIsSynced {
            try connection.run(
                "DELETE FROM traffic WHERE day<=? OR day>?",
                today - Self.trafficDays,
                today
            )
        }
        try connection.run(
            """
            DELETE FROM traffic WHERE day<>?1 AND
            day NOT IN (SELECT day FROM traffic ORDER BY day DESC LIMIT ?2)
            """,
            today,
            Self.trafficRows
        )
    }
}
