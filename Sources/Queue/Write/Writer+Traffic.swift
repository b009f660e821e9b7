// Counts network traffic per UTC day, for a week.
package import Host
import Records
import SQLite

/// The traffic of one day, in days since 1970-01-01 UTC.
package struct DayTraffic: Sendable, Equatable {
    package var day: Int64
    package var traffic: Traffic
}

extension Writer {
    /// Days kept, including today.
    package static let trafficDays: Int64 = 7
    /// The maximum number of rows, if the clock was never right.
    private static let trafficRows: Int64 = 32

    /// Adds bytes to a day; negative values subtract.
    func record(_ day: DayTraffic) throws {
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

    /// Adds bytes to today; negative values subtract.
    package func record(_ traffic: Traffic) throws {
        guard traffic != Traffic() else { return }
        // Uses the same time as records: the system clock may be wrong although the time is known.
        let today = rightTime.utcDay
        try record(DayTraffic(day: today, traffic: traffic))
        // An unsynced time may name any day, so it does not delete any.
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
