// The rules that make a gateway degraded or critical.
import Host
import Queue
import Upload

/// Derives the overall state and its reasons from a report (waypost(1), EXIT STATUS).
enum HealthRules {
    /// Problems for which `status --json` has no field.
    struct Notes {
        /// Why the state of the storage is not `ok`.
        var storage = ""
        /// Why a power cut would lose all pending records.
        var memory: String?
        /// Why nothing can be uploaded at all.
        var upload: String?
        /// Why nothing may be collected, such as a missing enrolment.
        var notCollecting: String?
        /// How old the queue's figures are, if the disk does not answer.
        var stale: String?
        /// Problems with a card or a stick.
        var card: [CardFailure] = []
        /// Quarantined databases.
        var setAside: [SetAside] = []
        /// Changed configuration keys that take effect at the next start.
        var needRestart: [String] = []
        /// Live outputs that have not been connected for long.
        var outputs: [String] = []
    }

    /// Returns the advice for a person about the file of a quarantined database.
    private static func advice(_ database: SetAside) -> String {
        switch database.waiting {
        case nil: "it is being read, leave it there"
        case 0?: "no record in it waits for upload: keep a copy if you want one, then delete it"
        case let waiting?:
            "\(counted(waiting, "record")) in it \(waiting == 1 ? "waits" : "wait") for upload, leave the file there until then"
        }
    }

    /// Returns the overall state and all reasons for it, critical ones first.
    static func evaluate(
        _ report: StatusReport,
        _ notes: Notes = Notes()
    ) -> (StatusReport.Health, [String]) {
        var critical: [String] = []
        var degraded: [String] = []
        if report.daemon.running == false { critical.append("daemon not running") }
        // A stream with nothing pending is not failing: rejected records are already in quarantine
        // or were dropped.
        let waiting = report.streams.values.filter { $0.pending > 0 || $0.inFlight > 0 }
        let failing = waiting.compactMap(\.lastError).max { $0.at < $1.at }
        // After a reload or a restart the token still counts as refused until another one is tried.
        if report.upload.state == .tokenRefused || failing?.code == .tokenRefused {
            critical.append("token refused")
        }
        switch report.storage.state {
        case .critical: critical.append("storage nearly full: \(notes.storage)")
        case .error: critical.append("records do not reach the disk: \(notes.storage)")
        case .full: degraded.append("storage \(notes.storage)")
        case .ok where !notes.storage.isEmpty: degraded.append("storage: \(notes.storage)")
        case .low: degraded.append("little storage left: \(notes.storage)")
        case .ok: break
        }
        for database in notes.setAside {
            let what =
                database.hasOtherTables
                ? "database with the tables of another version" : "corrupt database"
            critical.append("\(what) quarantined: \(database.path); \(advice(database))")
        }
        if let what = report.daemon.brokenInvariant {
            degraded.append("an invariant does not hold: \(what); please report it")
        }
        if let why = notes.memory { degraded.append("\(why); `waypost doctor`") }
        if let why = notes.notCollecting { degraded.append("nothing is collected: \(why)") }
        degraded += notes.card.map { "on the card: \($0)" }
        for (name, source) in report.sources.sorted(by: { $0.key < $1.key }) {
            let why = source.reason ?? (source.state == .error ? "error" : nil)
            if let why, [.error, .loaded].contains(source.state) {
                degraded.append("\(name): \(why)")
            }
        }
        for (name, output) in (report.outputs ?? [:]).sorted(by: { $0.key < $1.key })
        where output.state == StatusReport.Source.State.error.rawValue {
            degraded.append("\(name): \(output.reason ?? "error")")
        }
        for (name, stream) in report.streams.sorted(by: { $0.key < $1.key }) {
            if stream.quarantined > 0 {
                degraded.append("\(name): \(counted(stream.quarantined, "record")) in quarantine")
            }
        }
        if let why = notes.stale { degraded.append(why) }
        if let why = notes.upload { degraded.append("uploads failing: \(why)") }
        if let failing { degraded.append("uploads failing: \(failing.message)") }
        degraded += report.mqttIn?.problems.map { "mqtt in: \($0)" } ?? []
        if report.clock.state == .unsynced { degraded.append("clock not synced since this boot") }
        if let contradiction = report.clock.contradiction {
            degraded.append("clock: \(contradiction)")
        }
        degraded += notes.outputs
        if !notes.needRestart.isEmpty {
            degraded.append("restart waypost for \(notes.needRestart.joined(separator: ", "))")
        }
        let state: StatusReport.Health =
            !critical.isEmpty ? .critical : degraded.isEmpty ? .healthy : .degraded
        return (state, critical + degraded)
    }
}
