// The problems that the import of a card or stick leaves for `status`.
package import Host
import JSON

/// The contents of the file in the runtime directory that `status` reads.
///
/// Holds the problems of the last card or stick, and of the server that it named.
package struct CardFailures: Codable, Sendable, Equatable {
    package static let fileName = "import-problems.json"

    package var card: [CardFailure] = []
    package var server: [CardFailure] = []
    /// When the server was asked, in ms since boot.
    package var asked: Int64?
    /// Start times of imports that have not ended, by medium, in ms since boot.
    package var begun: [String: Int64]?

    /// All problems, except for imports that did not end.
    package var found: [CardFailure] { card + server }

    /// Returns all problems that `status` shows at time `now`.
    ///
    /// `accepted`: when the server last accepted a batch. That clears an earlier refusal: the
    /// device may have been registered since, and the server is not asked again before the next
    /// boot.
    package func all(at now: BootInstant, accepted: BootInstant? = nil) -> [CardFailure] {
        let isOver = accepted.map { $0.milliseconds >= asked ?? .max } ?? false
        let looks = begun ?? [:]
        let late = ImportMedium.allCases.filter { medium in
            looks[medium.rawValue].map { now.milliseconds - $0 >= medium.patience } ?? false
        }
        return card + (isOver ? [] : server) + late.map(\.notEnded)
    }

    package var isEmpty: Bool { found.isEmpty && (begun ?? [:]).isEmpty }

    package static func read(in runtime: String) -> CardFailures {
        let text = SmallText.read(
            "\(runtime)/\(Self.fileName)",
            limit: 1 << 18,
            followsLink: false
        )
        return text.flatMap { try? JSONInput.decode(Self.self, from: Array($0.utf8)) }
            ?? CardFailures()
    }
}

/// The medium that an import reads.
package enum ImportMedium: String, Sendable, CaseIterable {
    /// The card that the device boots from; its files are imported again when they change.
    case card
    /// A plugged-in stick; its files are imported unless they are in force already.
    case stick

    /// The value of `CardFailure.file` for problems with the medium itself.
    package var name: String { self == .card ? "" : "the stick" }
}

extension ImportMedium {
    /// The time after which an import that did not end is reported, in ms.
    ///
    /// The gateway starts after the import of the card; that of a stick ends within the timeout of
    /// its unit (`waypost-stick@.service`).
    fileprivate var patience: Int64 {
        switch self {
        case .card: 0
        case .stick: 90_000
        }
    }

    fileprivate var notEnded: CardFailure {
        let remedy =
            switch self {
            case .card: "it is tried again by itself; `journalctl -u waypost-import` says why"
            case .stick: "plug it in again, or check it on a computer"
            }
        let what = "the look at it did not end: it was stopped, or waits for a read"
        return CardFailure(file: name, what, remedy)
    }
}
