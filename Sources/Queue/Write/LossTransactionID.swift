// Losses that no commit is known to have entered: of a start of this program, and of boots before.
package import Host
package import Records

/// A commit that enters losses, among all of one start of the program.
package struct LossTransactionID: Sendable, Equatable {
    /// The name of the queue's memo: the last one that was committed.
    static let memo = "losses"

    package var bootID: String
    package var started: BootInstant
    package var number: Int64

    package init(bootID: String, started: BootInstant, number: Int64) {
        (self.bootID, self.started, self.number) = (bootID, started, number)
    }

    /// Reads what `text` wrote; nil for anything else.
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

/// What a boot lost and could not enter.
package struct LossNote: Sendable {
    /// Of this note alone, without blanks.
    package var name: String
    package var bootID: String
    package var losses: [Loss]

    package init(name: String, bootID: String, losses: [Loss]) {
        (self.name, self.bootID, self.losses) = (name, bootID, losses)
    }
}
