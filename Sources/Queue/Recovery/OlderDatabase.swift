// A quarantined database.

/// A quarantined database, as the live one knows it.
package struct OlderDatabase: Sendable {
    package enum State: Int64, Sendable {
        /// Its bookkeeping is imported; its records are not read yet.
        case adopted = 0
        /// Its records are being uploaded.
        case draining = 1
        case finished = 2
    }

    var id: Int64
    var name: String
    package var state: State
    var path: String
    /// Its state at the last commit; nil if the process that wrote it did not quarantine it itself.
    var mark: CommitMark?

    init(id: Int64, name: String, state: Int64, _ settings: QueueSettings) {
        self.id = id
        self.name = name
        self.state = State(rawValue: state) ?? .finished
        path = settings.folder + "/" + name
    }
}
