// Replies to jobs: what became of something that the server asked for.
package import Host

/// The outcome of a job.
package struct JobOutcome: Sendable, Equatable {
    package enum State: String, Codable, Sendable {
        case done, refused, failed, expired
        /// Settings or a version of the program that are tried, stay, or were taken back.
        case trial, kept
        case rolledBack = "rolled_back"
    }

    /// The version that a job puts in place of another.
    package enum Version: Sendable, Equatable {
        case settings(Int64)
        /// A version of Debian, which needs no escapes in JSON.
        case program(String)

        fileprivate var json: String {
            switch self {
            case .settings(let number): "\(number)"
            case .program(let text): "\"\(text)\""
            }
        }
    }

    package var state: State
    /// For people; empty if there is nothing to add.
    package var message: String
    /// A JSON object; empty for none.
    package var detail: String
    /// Nil for jobs without one.
    package var version: Version?

    package init(
        _ state: State,
        _ message: String = "",
        detail: String = "",
        version: Version? = nil
    ) {
        (self.state, self.message, self.detail, self.version) = (state, message, detail, version)
    }
}

/// The reply to a job (waypost-protocol(7), JOBS).
package struct JobReply: Sendable, Equatable {
    /// The server's id of the job.
    package var job: String
    package var kind: String
    package var outcome: JobOutcome
    package var stamp: Stamp

    package init(job: String, kind: String, _ outcome: JobOutcome, stamp: Stamp) {
        (self.job, self.kind, self.outcome, self.stamp) = (job, kind, outcome, stamp)
    }
}

extension Stream {
    package static let replies = Stream(8, "replies")
}

extension JobReply: PlainRecord {
    package static let kind = StreamKind(
        .replies,
        wire: "waypost_replies",
        columns: [
            .text("job"), .text("kind"), .text("state"), .text("message"), .members("detail"),
        ],
        isAlwaysShown: false
    )

    package var values: [ColumnValue] {
        let message = outcome.message
        var members = outcome.version.map { ["\"version\":\($0.json)"] } ?? []
        if !outcome.detail.isEmpty { members.append("\"detail\":\(outcome.detail)") }
        return [
            .text(job), .text(kind), .text(outcome.state.rawValue),
            message.isEmpty ? .none : .text(message),
            members.isEmpty ? .none : .text("{\(members.joined(separator: ","))}"),
        ]
    }
}
