// Losses whose commit is uncertain: of this process, and of earlier boots.
package import Host
package import Records

/// Identifies one transaction that recorded losses: boot, process start, and a counter.
///
/// Written with that transaction. If the process dies before it learns whether the commit reached
/// the disk, the next start compares this value with the last one stored and records the losses
/// exactly once.
package struct LossTransactionID: Sendable, Equatable {
    /// The name of the queue's memo that holds the last committed value.
    static let memo = "losses"

    package var bootID: String
    package var started: BootInstant
    package var number: Int64

    package init(bootID: String, started: BootInstant, number: Int64) {
        (self.bootID, self.started, self.number) = (bootID, started, number)
    }

    /// Parses `text`; nil if it is malformed.
    init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 3, let started = Int64(words[1]), let number = Int64(words[2]) else {
            return nil
        }
        self.init(
            bootID: String(words[0]),
            started: BootInstant(nanoseconds: started),
            number: number
        )
    }

    var text: String { "\(bootID) \(started.nanoseconds) \(number)" }
}

/// Losses of one boot that could not be recorded in the database.
package struct LossNote: Sendable {
    /// Unique among notes; contains no spaces.
    package var name: String
    package var bootID: String
    package var losses: [Loss]

    package init(name: String, bootID: String, losses: [Loss]) {
        (self.name, self.bootID, self.losses) = (name, bootID, losses)
    }
}
