// The server's figures for Prometheus.
import Host
package import ServerArchive
package import ServerBase
package import ServerIndex
import Synchronization

/// Collects the figures of a server with a folder at each scrape.
///
/// Thread-safe.
package final class ServerMetrics: Sendable {
    /// Statuses that are reported from the start on, so that a first increase is seen.
    private static let usual = [400, 401, 403, 413, 422, 429, 500, 503]

    private let directory: String
    private let version: String
    private let archive: Archive
    private let fleet: Fleet
    private let follower: IndexFollower
    private let refusals: RefusalCounts
    private let bytes = Atomic<Int64>(0)

    package init(
        directory: String,
        version: String,
        archive: Archive,
        fleet: Fleet,
        follower: IndexFollower,
        refusals: RefusalCounts
    ) {
        (self.directory, self.version) = (directory, version)
        (self.archive, self.fleet, self.follower) = (archive, fleet, follower)
        self.refusals = refusals
    }

    /// Counts the body of a stored batch, as it came over the wire.
    package func received(bytes count: Int) { bytes.add(Int64(count), ordering: .relaxed) }

    /// Returns the metrics; throws if the databases cannot be read.
    package func text() throws -> String {
        var text = PrometheusText(prefix: "waypost_receiver_")
        text.add("build_info", .gauge, "Version of the server.", [(["version": version], 1)])
        let devices = try fleet.look(at: SystemClock().wall().milliseconds).devices
        let levels: [PrometheusText.Sample] = DeviceLevel.allCases.map { level in
            (["state": "\(level)"], Double(devices.count { $0.level == level }))
        }
        text.add("devices", .gauge, "Devices by state, as on the page.", levels)
        let totals = archive.totals
        text.add("batches_total", .counter, "Batches stored.", Double(totals.batches))
        text.add("records_total", .counter, "Records stored.", Double(totals.records))
        let bytes = Double(bytes.load(ordering: .relaxed))
        text.add("received_bytes_total", .counter, "Bytes of stored batches on the wire.", bytes)
        var counts = refusals.all
        for status in Self.usual { counts[status] = counts[status] ?? 0 }
        let refused = counts.sorted { $0.key < $1.key }
            .map { (labels: ["status": "\($0)"] as KeyValuePairs, value: Double($1)) }
        text.add("refusals_total", .counter, "Refused requests by HTTP status.", refused)
        if let last = devices.compactMap({ $0.contact?.lastSeen.milliseconds }).max() {
            let help = "When a device last sent a batch."
            text.add("last_batch_timestamp_seconds", .gauge, help, Double(last) / 1000)
        }
        if let free = FileSpace.free(directory) {
            text.add("free_bytes", .gauge, "Free for data.", Double(free))
        }
        let lag = follower.lag
        let waited = Double(lag.time.milliseconds) / 1000
        let help = "How long the oldest record that is not in the index waits."
        text.add("index_lag_seconds", .gauge, help, waited)
        let unread = Double(lag.unreadFiles)
        text.add("index_unreadable_files", .gauge, "Files that cannot be read.", unread)
        return text.text
    }
}
