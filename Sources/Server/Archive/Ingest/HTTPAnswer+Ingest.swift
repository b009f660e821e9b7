// Answers about a token and about the health of the server.
import ServerWeb

extension HTTPAnswer {
    /// Answers a device that checks its token; `device`: whose token it is, "" for any; `maxBody`:
    /// the bytes of the largest body; `jobs`: the tag of the device's jobs.
    package init(verified device: String, maxBody: Int, jobs: String? = nil) {
        var facts: [String: Any] = [
            "ok": true, "max_body": min(maxBody, Inflater.limit), "columns": 1,
        ]
        facts["jobs"] = jobs
        self.init(200, device.isEmpty ? facts : facts.merging(["device_id": device]) { $1 })
    }

    /// Answers a health check; `more`: additional members.
    package init(health totals: ArchiveTotals, version: String, more: [String: Any] = [:]) {
        let facts: [String: Any] = [
            "ok": true, "version": version, "records": totals.records, "batches": totals.batches,
        ]
        self.init(200, facts.merging(more) { $1 })
    }
}
