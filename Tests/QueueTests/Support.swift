import Foundation
import Host
@testable import Queue
import QueueSupport
import Records
import SQLite
import Support
import Testing

extension TemporaryFolder {
    /// The number of files that this process has open.
    var openFiles: Int {
        let links = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return links.count { link in
            let target = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/fd/" + link
            )
            return target?.contains(path) ?? false
        }
    }
}

/// Checks the invariants of each stream: every accepted record is accounted for, and the rows
/// exist.
func checkSum(_ queue: Queue) throws {
    for count in try queue.perform({ try $0.counts() }) {
        let stream = count.figures
        #expect(stream.accepted == count.next - 1, "\(stream)")
        #expect(
            stream.accepted
                == stream.uploaded + stream.pending + stream.quarantined + stream.evicted
        )
        #expect(count.rows == stream.pending + stream.quarantined, "\(stream)")
        #expect(stream.pendingBytes == count.pendingBytes, "\(stream)")
    }
}

/// A stream's counters and the tables' contents at the same time: maintenance runs beside a test.
private struct StreamCount {
    let figures: StreamStatistics
    /// The sequence of the next record.
    let next: Int
    /// Rows that are not uploaded: pending and quarantined.
    let rows: Int
    let pendingBytes: Int
}

extension Writer {
    fileprivate func counts() throws -> [StreamCount] {
        try streams.kinds.map { kind in
            let (id, table) = (Int64(kind.stream.number), kind.table)
            func integer(_ statement: String) throws -> Int {
                Int(try connection.integer(statement, id) ?? 0)
            }
            return StreamCount(
                figures: liveStatistics(kind),
                next: try integer("SELECT next FROM sequences WHERE database=0 AND stream=?"),
                rows: try integer(
                    """
                    SELECT count(*) FROM \(table) r WHERE NOT EXISTS (SELECT 1 FROM batches
                    WHERE stream=? AND state=1 AND r.id BETWEEN first AND last)
                    """
                ),
                pendingBytes: try integer(
                    """
                    SELECT sum(\(kind.storedBytes)) FROM \(table) r WHERE NOT EXISTS (SELECT 1 FROM batches
                    WHERE stream=? AND state>0 AND r.id BETWEEN first AND last)
                    """
                )
            )
        }
    }
}
