// What makes a gateway degraded or critical.
import Host
import Queue
import StatusBoard
import Upload

/// What makes a gateway degraded or critical (waypost(1), EXIT STATUS).
enum HealthRules {
    /// What `status --json` has no field for.
    struct Notes {
        /// Why the state of the storage is not `ok`.
        var storage = ""
        /// Why a power cut takes all that waits.
        var memory: String?
        /// Why nothing can be uploaded at all.
        var upload: String?
        /// Why nothing may be collected.
        var notCollecting: String?
        /// Why figures of the queue are not of now.
        var stale: String?
        /// What is wrong with a card or a stick.
        var card: [CardProblem] = []
        /// Databases that were set aside as damaged.
        var setAside: [SetAside] = []
    }

    /// What a person may do with the file.
    private static func advice(_ database: SetAside) -> String {
        switch database.waiting {
        case nil: "it is being read, leave it there"
        case 0?: "nothing in it waits any more: keep a copy if you want one, then delete it"
        case let waiting?:
            "\(waiting) records in it wait for their upload, leave it there until then"
        }
    }

    static func judge(
        _ report: StatusReport,
        _ notes: Notes = Notes()
    ) -> (StatusReport.Health, [String]) {
        var critical: [String] = []
        var degraded: [String] = []
        if report.daemon.running == false { critical.append("daemon not running") }
        // Where nothing waits any more, nothing fails: what was refused is in quarantine, or somebody dropped it.
        let waiting = report.streams.values.filter { $0.pending > 0 || $0.inFlight > 0 }
        let failing = waiting.compactMap(\.lastError).max { $0.at < $1.at }
        // After a reload or a restart the token is the same until another one is tried.
        if report.upload.state == UploadReport.Phase.tokenRefused.rawValue
            || failing?.code == ErrorCode.tokenRefused.rawValue
        {
            critical.append("token refused")
        }
        switch report.storage.state {
        case "critical": critical.append("storage nearly full: \(notes.storage)")
        case "error": critical.append("records do not reach the disk: \(notes.storage)")
        case "full": degraded.append("storage \(notes.storage)")
        case "ok" where !notes.storage.isEmpty: degraded.append("storage: \(notes.storage)")
        case "low": degraded.append("little storage left: \(notes.storage)")
        default: break
        }
        for database in notes.setAside {
            critical.append("database set aside as corrupt: \(database.path); \(advice(database))")
        }
        if let why = notes.memory { degraded.append("\(why); `waypost doctor`") }
        if let why = notes.notCollecting { degraded.append("nothing is collected: \(why)") }
        degraded += notes.card.map { "on the card: \($0)" }
        for (name, source) in report.sources.sorted(by: { $0.key < $1.key }) {
            if source.state == "error" { degraded.append("\(name): \(source.reason ?? "error")") }
            if source.state == "loaded", let concern = source.reason {
                degraded.append("\(name): \(concern)")
            }
        }
        for (name, stream) in report.streams.sorted(by: { $0.key < $1.key }) {
            if stream.quarantined > 0 {
                degraded.append("\(name): \(stream.quarantined) records in quarantine")
            }
        }
        if let why = notes.stale { degraded.append(why) }
        if let why = notes.upload { degraded.append("uploads failing: \(why)") }
        if let failing { degraded.append("uploads failing: \(failing.message)") }
        if report.clock.state == "unsynced" {
            degraded.append("clock not synced since this boot")
        }
        if let contradiction = report.clock.contradiction {
            degraded.append("clock: \(contradiction)")
        }
        let state: StatusReport.Health =
            !critical.isEmpty ? .critical : degraded.isEmpty ? .healthy : .degraded
        return (state, critical + degraded)
    }
}
