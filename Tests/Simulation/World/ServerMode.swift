// The behaviour of the simulated server.

/// One behaviour, for a while.
enum ServerMode: String, CaseIterable {
    case good
    /// Stores the records, and the answer is lost.
    case losesAnswers
    /// Does not receive some requests.
    case losesRequests
    /// Never answers: like `losesRequests` for every request.
    case stalls
    /// Refuses single records by their content.
    case poison
    case refusesAll
    /// Answers 413 above a number of records.
    case tooLarge
    case failing
    case tokenRefused
    case wrongEndpoint
    /// Sends a long answer with an id for each record.
    case echoes
    /// Stores the records and reports all as duplicates.
    case saysDuplicates
    /// Answers 409 to the first try of each key.
    case busyFirst
    /// Gives any answer of waypost-protocol(7), ANSWERS.
    case table
    /// Answers 500 to each batch with one of a few records.
    case chokes

    /// The modes that a step draws from; seeds that found something must keep their histories.
    static let drawn = allCases.filter { $0 != .table && $0 != .chokes }
}
