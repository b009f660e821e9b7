// Whether a card is in the board that it was in before: a copy of it makes one device of two.
import Host

/// Compares the board with the one that is noted on the card.
///
/// The device's id, its token and all that waits come along when a card is moved, which is right where the board
/// is broken, and wrong where the card is a copy and the other board still runs. A person knows which.
struct BoardNote {
    let places: ImportPlaces
    let files: StepFiles

    private var path: String { "\(places.journal)/board" }

    /// What is to be told of it, during the first boot in another board; nil on a board without a serial number.
    func check(_ configuration: Configuration?) throws -> CardProblem? {
        guard let serial = line(of: places.boardSerial), let boot = line(of: places.bootID) else {
            return nil
        }
        // The board, and where it is another one now: the one before, and the boot that found it.
        let noted = (SmallText.read(path) ?? "").split(separator: "\n").map { String($0) }
        if noted.first == serial {
            return noted.count == 3 && noted[2] == boot ? told(noted[1], configuration) : nil
        }
        let lines = [serial] + (noted.first.map { [$0, boot] } ?? [])
        try files.replace(path, lines.map { $0 + "\n" }.joined(), mode: 0o600)
        return noted.first.flatMap { told($0, configuration) }
    }

    private func told(_ before: String, _ configuration: Configuration?) -> CardProblem? {
        // Each card has a name of its own then, or a person has thought of it.
        guard configuration?.deviceID ?? "auto" == "auto" else { return nil }
        return CardProblem(
            file: "",
            "it was in another board before (\(before)): if that one runs with a copy of it, both are one "
                + "device to the server",
            "for a copy, write device_id = \"A-NAME\" as the first line of waypost.toml, and a code or token of "
                + "its own beside it; otherwise nothing: this is told until the next start"
        )
    }

    /// The first line of a file of the kernel, which may end with a zero byte (devicetree).
    private func line(of path: String) -> String? {
        guard let text = SmallText.read(path, limit: 128) else { return nil }
        let line = text.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        return line.isEmpty ? nil : String(line)
    }
}
