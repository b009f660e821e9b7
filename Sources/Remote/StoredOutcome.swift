// The outcome of a trial that outlives the process.
import Records

/// The newest outcome of a job whose state is in a file.
///
/// The file is the truth, and a memo, stored with the reply, names the outcome that was answered
/// last. If they differ, an answer is owed: a kill between any two steps neither loses nor repeats
/// one.
struct StoredOutcome: Equatable {
    /// The name of the memo.
    let memo: String
    /// The server's id of the job, and its kind.
    let job: String
    let kind: String
    let outcome: JobOutcome

    /// Identifies it in the memo.
    var mark: String { "\(job) \(outcome.state.rawValue)" }
}
