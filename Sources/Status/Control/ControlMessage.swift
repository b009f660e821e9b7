// The messages of the control socket: requests and replies, one JSON object per line.
import Host
import JSON
package import Upload

/// A request: `{"command": "quarantine drop", "argument": "7"}`.
package struct ControlRequest: Codable, Sendable, Equatable {
    package enum Command: String, Codable, Sendable, CaseIterable {
        case status
        /// Sends the status now and after each change, until the client disconnects.
        case watch
        /// Starts a sync and sends the status after each change until it ends.
        ///
        /// `argument`: `overBudget`, or absent.
        case sync
        case reload
        /// `argument`: the name of a source.
        case restart
        /// `argument`: only batches numbered above it; absent for the first page.
        case quarantineList = "quarantine list"
        /// `argument`: a batch's number or key, or `all`.
        case requeue = "quarantine requeue"
        /// `argument`: a batch's number or key.
        case drop = "quarantine drop"
        /// `argument`: as `ResendRequest` writes it.
        case resend
        /// `argument`: as `AudioMarkRequest` writes it.
        case audioMark = "audio mark"
        /// `argument`: the survey's name.
        case surveyStart = "survey start"
        case surveyStop = "survey stop"
        case surveyList = "survey list"
        /// Asks for the status and the figures of the gateway's process.
        case measure
    }

    /// The argument of a sync that ignores the daily budget.
    package static let overBudget = "over budget"

    package var command: Command
    package var argument: String?

    package init(_ command: Command, _ argument: String? = nil) {
        self.command = command
        self.argument = argument
    }

    /// Parses a line; nil if it is not a request.
    init?(line: [UInt8]) {
        guard let request = try? JSONInput.decode(Self.self, from: line) else { return nil }
        self = request
    }

    /// Without the end of the line.
    var json: [UInt8] { encodedJSON(self) }
}

/// A reply; only the fields that apply are present.
package struct ControlReply: Codable, Sendable {
    /// The reason why nothing was done.
    package var error: String?
    /// True if the request completed; false after a `sync` that left records.
    package var done: Bool?
    package var status: StatusReport?
    /// The result of a `sync`.
    package var sync: SyncResult?
    package var quarantine: QuarantinePage?
    /// Counts of requeued, dropped or resent batches and records.
    package var changed: QuarantineChange?
    package var survey: SurveyReply?
    package var figures: GatewayFigures?

    init(done: Bool? = nil, error: String? = nil) {
        self.done = done
        self.error = error
    }

    init?(line: [UInt8]) {
        guard let reply = try? JSONInput.decode(Self.self, from: line, snakeCase: true) else {
            return nil
        }
        self = reply
    }

    /// Without the end of the line.
    var json: [UInt8] { encodedJSON(self) }
}
