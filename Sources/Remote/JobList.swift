// Parses the server's list of jobs, which may hold anything.
package import Host
import JSON

/// A list of jobs with the tag under which the server offers it.
package struct JobList: Sendable, Equatable {
    package static let maxBytes = 64 << 10
    package static let maxJobs = 64

    package let tag: String
    package let jobs: [RemoteJob]

    /// Throws a Failure that says what is wrong with the list; then nothing of it is done.
    package init(_ bytes: [UInt8]) throws(Failure) {
        guard bytes.count <= Self.maxBytes else {
            throw Failure("it has more than \(Self.maxBytes) bytes")
        }
        guard let value = try? JSONValue(bytes), case .object(let members) = value,
            case .text(let tag)? = members["tag"], tag.isPrintable(atMost: RemoteJob.longestText),
            case .array(let values)? = members["jobs"]
        else { throw Failure("it is not a JSON object with a tag and an array of jobs") }
        guard values.count <= Self.maxJobs else {
            throw Failure("it has more than \(Self.maxJobs) jobs")
        }
        let jobs = values.compactMap { RemoteJob($0) }
        guard jobs.count == values.count else {
            throw Failure(
                "a job has no id of 1 to \(RemoteJob.longestText) printable ASCII characters"
            )
        }
        (self.tag, self.jobs) = (tag, jobs)
    }
}
