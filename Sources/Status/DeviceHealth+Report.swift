// The health record of a status report.
package import Host
import Queue
package import Records

extension StatusReport.StreamFigures {
    mutating func show(held figures: StreamStatistics, always: Bool) {
        guard figures.held > 0 || always && figures.stream == .audio else { return }
        (held, heldBytes) = (figures.held, figures.heldBytes)
        (heldFrom, heldTo) = (figures.heldSpan?.lowerBound, figures.heldSpan?.upperBound)
    }

    /// nil while all sound is uploaded.
    var heldSound: HeldSound? {
        held.map { HeldSound(chunks: $0, bytes: heldBytes ?? 0, from: heldFrom, to: heldTo) }
    }
}

extension DeviceHealth {
    /// Makes the record of a report at `now`; `right` is the right time then, as far as known.
    package init(
        _ report: StatusReport,
        lost: [String: Int],
        board: BoardReadings,
        at now: Stamp,
        right: WallTime
    ) {
        // Without an answer of the disk there are no figures: a database has more than no bytes.
        let storage = report.storage.databaseBytes > 0 ? report.storage : nil
        self.init(
            stamp: now,
            state: report.state.rawValue,
            reasons: report.reasons,
            version: report.version,
            uptime: report.daemon.uptimeS,
            freeBytes: storage?.freeBytes,
            databaseBytes: storage?.databaseBytes
        )
        roomTenths = storage?.roomDays.map { Int64(($0 * 10).rounded()) }
        held = report.streams.values.compactMap(\.heldSound).first
        pending = report.streams.mapValues(\.pending)
        self.lost = lost
        sources = report.sources.mapValues(\.state.rawValue)
        self.board = board
        if let next = report.upload.nextSyncAt {
            nextSync = now.advanced(by: .milliseconds(next.milliseconds &- now.wall.milliseconds))
        }
        // Before the first synchronisation the clock cannot tell a record of an earlier boot.
        guard report.clock.state != .unsynced,
            let oldest = report.streams.values.compactMap(\.oldestPendingAt).min()
        else { return }
        let age = right.milliseconds &- oldest.milliseconds
        if (0...now.boot.milliseconds).contains(age) {
            oldestPending = now.advanced(by: .milliseconds(-age))
        } else {
            oldestPendingBefore = oldest
        }
    }
}
