// A database that was set aside.

/// A database that was set aside, as the live one knows it.
struct OlderDatabase: Sendable {
    enum State: Int64, Sendable {
        /// Its books are taken over; its records are to be read.
        case adopted = 0
        /// Its records are being uploaded.
        case draining = 1
        case finished = 2
    }

    var id: Int64
    var name: String
    var state: State
    var path: String
    /// How far it was at its last commit; nil where the program that wrote it did not set it aside itself.
    var mark: CommitMark?

    init(id: Int64, name: String, state: Int64, _ settings: QueueSettings) {
        self.id = id
        self.name = name
        self.state = State(rawValue: state) ?? .finished
        path = settings.folder + "/" + name
    }
}
