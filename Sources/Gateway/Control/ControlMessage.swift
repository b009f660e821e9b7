// What goes over the control socket: one JSON object a line each way, requests of one shape, replies of one shape.
import Host
import JSON
package import Upload

/// A request: `{"command": "quarantine drop", "argument": "7"}`.
package struct ControlRequest: Codable, Sendable, Equatable {
    package enum Command: String, Codable, Sendable, CaseIterable {
        case status
        /// The status now, and again after each change, until the client goes.
        case watch
        /// Uploads what is due; the status after each change until it is over. `argument`: `overBudget`, or nothing.
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
        /// `argument`: its name.
        case surveyStart = "survey start"
        case surveyStop = "survey stop"
        case surveyList = "survey list"
    }

    /// Of a sync: whatever it costs of the day's budget.
    package static let overBudget = "over budget"

    package var command: Command
    package var argument: String?

    package init(_ command: Command, _ argument: String? = nil) {
        self.command = command
        self.argument = argument
    }

    /// nil for anything else.
    init?(line: [UInt8]) {
        guard let request = try? JSONInput.decode(Self.self, from: line) else { return nil }
        self = request
    }

    /// Without the end of the line.
    var json: [UInt8] { encodedJSON(self) }
}

/// A reply; what it does not tell of is absent.
package struct ControlReply: Codable, Sendable {
    /// Why nothing was done.
    package var error: String?
    /// What was asked for is done to its end; false after a `sync` that left something.
    package var done: Bool?
    package var status: StatusReport?
    /// What a `sync` has come to.
    package var sync: SyncResult?
    package var quarantine: QuarantinePage?
    /// Records and batches that were requeued or dropped, or that are to be sent again.
    package var changed: QuarantineChange?
    package var survey: SurveyReply?

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
