// How the simulated server behaves.

/// One way to behave, for a while.
enum ServerMode: String, CaseIterable {
    case good
    /// Stores, and the answer is lost.
    case losesAnswers
    /// Never hears of some requests.
    case losesRequests
    /// No answer at all: as `losesRequests`, always.
    case stalls
    /// Refuses single records, by their content.
    case poison
    case refusesAll
    /// 413 above some records.
    case tooLarge
    case failing
    case tokenRefused
    case wrongEndpoint
    /// A long answer with an id for each record.
    case echoes
    /// Stores, and says that all of it was there already.
    case saysDuplicates
    /// 409 at the first try of each key.
    case busyFirst
    /// Any answer of waypost-protocol(7), ANSWERS.
    case table
    /// 500 for each batch that has one of a few records in it.
    case chokes

    /// Those that a step draws from; seeds that were found are to stand for what they stood for.
    static let drawn = allCases.filter { $0 != .table && $0 != .chokes }
}
