// The status as Prometheus metrics (text format 0.0.4).
import Host

extension PrometheusText {
    /// Renders a status report as metrics; every name begins with `waypost_`.
    init(_ report: StatusReport, at now: WallTime) {
        self.init(prefix: "waypost_")
        let version: KeyValuePairs = ["version": report.version, "device_id": report.deviceId]
        add("info", .gauge, "Version and device.", [(version, 1)])
        add(
            "state",
            .gauge,
            "1 for the overall state that `waypost status` shows.",
            ["healthy", "degraded", "critical"].map {
                (["state": $0], flag(report.state.rawValue == $0))
            }
        )
        add("report_timestamp_seconds", .gauge, "When this file was written.", seconds(now))
        let isSynced = report.clock.state == .synced
        add("clock_synced", .gauge, "1 when the clock is right.", flag(isSynced))
        let daemon = report.daemon
        add("uptime_seconds", .gauge, "Seconds since the start.", Double(daemon.uptimeS))
        add("cpu_seconds_total", .counter, "CPU time.", daemon.cpuS)
        add("resident_bytes", .gauge, "Memory in use.", Double(daemon.rssBytes))
        add("private_bytes", .gauge, "Private memory.", Double(daemon.privateBytes))
        let broken = Double(daemon.brokenInvariants ?? 0)
        add("broken_invariants_total", .counter, "Faults that the program found in itself.", broken)
        let storage = report.storage
        add("database_bytes", .gauge, "Database and journal.", Double(storage.databaseBytes))
        add("free_bytes", .gauge, "Free for records.", Double(storage.freeBytes))
        if let days = storage.roomDays { add("room_days", .gauge, "Until it is full.", days) }
        add("written_bytes_total", .counter, "Written to disks.", Double(storage.writtenBytes))
        add("evicted_records_total", .counter, "Evicted.", Double(storage.evictedRecords))
        let today = Double(report.upload.bytesToday)
        add("upload_bytes_today", .gauge, "Bytes since midnight UTC.", today)
        if let budget = report.upload.budget {
            add("upload_budget_bytes", .gauge, "Allowed per day.", Double(budget.bytes))
            add("upload_budget_spent_bytes", .gauge, "Bytes spent.", Double(budget.spentBytes))
        }
        addSources(report.sources)
        addStreams(report.streams)
        add(
            "lost_records_total",
            .counter,
            "Lost records by kind of loss.",
            report.losses.map { (["stream": $0.stream, "kind": $0.kind], Double($0.records)) }
        )
        let totals = report.errorTotals.mapValues(Double.init)
        add("errors_total", .counter, "Errors by code.", samples("code", totals) { $0 })
    }

    /// Replaces the file atomically.
    ///
    /// Without fsync: the next file follows in seconds, and each sync wears the card.
    func write(to path: String) throws(SystemError) {
        try SmallFile.replace(path, Array(text.utf8), mode: 0o644, isSynced: false)
    }

    // MARK: Parts

    private mutating func addSources(_ all: [String: StatusReport.Source]) {
        func each(_ value: (StatusReport.Source) -> Double?) -> [Sample] {
            samples("source", all, value)
        }
        add("source_loaded", .gauge, "1 while it works.", each { flag($0.state == .loaded) })
        add("source_records_total", .counter, "Records.", each { Double($0.records) })
        add("source_dropped_total", .counter, "Dropped.", each { Double($0.dropped) })
        add("source_restarts_total", .counter, "Restarts.", each { Double($0.restarts) })
        add(
            "source_last_record_timestamp_seconds",
            .gauge,
            "When the last record came.",
            each { $0.lastRecordAt.map(seconds) }
        )
    }

    private mutating func addStreams(_ all: [String: StatusReport.StreamFigures]) {
        func each(_ value: (StatusReport.StreamFigures) -> Double?) -> [Sample] {
            samples("stream", all, value)
        }
        add("pending_records", .gauge, "Not at the server yet.", each { Double($0.pending) })
        add("pending_bytes", .gauge, "Their stored bytes.", each { Double($0.pendingBytes) })
        add("held_records", .gauge, "Not marked for upload.", each { $0.held.map(Double.init) })
        add("held_bytes", .gauge, "Their stored bytes.", each { $0.heldBytes.map(Double.init) })
        add("quarantined_records", .gauge, "Refused.", each { Double($0.quarantined) })
        add("uploaded_records_total", .counter, "At the server.", each { Double($0.uploaded) })
        add(
            "last_success_timestamp_seconds",
            .gauge,
            "When the server last took a batch.",
            each { $0.lastSuccessAt.map(seconds) }
        )
    }

    /// Returns a sample for each part that has a value, labelled with its name and sorted by it.
    private func samples<Part>(
        _ label: String,
        _ parts: [String: Part],
        _ value: (Part) -> Double?
    ) -> [Sample] {
        parts.sorted { $0.key < $1.key }.compactMap { name, part in
            value(part).map { ([label: name], $0) }
        }
    }

    private func flag(_ isTrue: Bool) -> Double { isTrue ? 1 : 0 }

    private func seconds(_ wall: WallTime) -> Double { Double(wall.milliseconds) / 1000 }
}
