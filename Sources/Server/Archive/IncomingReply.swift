// A device's reply to a job, as its record has it.
import Host
import ServerBase

/// The members of a reply that the jobs use; a device may send anything in them.
package struct IncomingReply: Sendable {
    /// Characters of a message that are stored.
    private static let longestMessage = 300

    package let job: String
    /// A reply about settings; several come for one job.
    package let isOfSettings: Bool
    package let state: String
    /// Nil if it is not an integer.
    package let version: Int64?
    /// The reason in a reply about settings, on one line; "" if there is none.
    package let message: String
    /// The day of its record.
    let date: String
    /// The record file, relative to the archive's directory; "" until its batch has been read.
    package var file = ""

    /// Returns nil for a record that is not a reply.
    init?(_ line: RecordLine, date: String) {
        guard let job = line.text("job"), isName(job), let state = line.text("state") else {
            return nil
        }
        (self.job, self.date) = (job, date)
        self.state = printable(state, limit: 40)
        isOfSettings = line.text("kind") == "settings"
        version = line.integer("version")
        let reason = isOfSettings ? line["message"].map { line.value($0).words } : nil
        message = printable(reason ?? "", limit: Self.longestMessage)
    }
}
