// Detects a card that was moved or copied to another board; with a copy, two boards are one device.
import Host
import Setup
import Status

/// Compares the board's serial number with the one stored on the card.
///
/// A moved card brings the device's id, token and queue. That is right if the old board is broken,
/// and wrong if the card is a copy and the other board still runs; only a person knows which.
struct BoardNote {
    let paths: ImportPaths
    let files: StepFiles

    private var path: String { "\(paths.journal)/board" }

    /// Returns a problem during the first boot in another board.
    ///
    /// nil on a board without a serial number.
    func check(_ configuration: Configuration?) throws -> CardFailure? {
        guard let serial = line(of: paths.boardSerial), let boot = line(of: paths.bootID) else {
            return nil
        }
        // Lines: the board; after a change also the previous board and the boot that found it.
        let noted = (SmallText.read(path) ?? "").split(separator: "\n").map { String($0) }
        if noted.first == serial {
            return noted.count == 3 && noted[2] == boot ? reported(noted[1], configuration) : nil
        }
        let lines = [serial] + (noted.first.map { [$0, boot] } ?? [])
        try files.replace(path, lines.map { $0 + "\n" }.joined(), mode: 0o600)
        return noted.first.flatMap { reported($0, configuration) }
    }

    private func reported(_ before: String, _ configuration: Configuration?) -> CardFailure? {
        // With a configured device_id, a person has named each card.
        guard configuration?.deviceID ?? "auto" == "auto" else { return nil }
        return CardFailure(
            file: "",
            "it was in another board before (\(before)): if that one runs with a copy of it, both are one "
                + "device to the server",
            "for a copy, write device_id = \"A-NAME\" as the first line of waypost.toml, and a code or token of "
                + "its own beside it; otherwise do nothing: this message ends at the next start"
        )
    }

    /// Returns the first line of a kernel file, which may end with a zero byte (devicetree).
    private func line(of path: String) -> String? {
        guard let text = SmallText.read(path, limit: 128) else { return nil }
        let line = text.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        return line.isEmpty ? nil : String(line)
    }
}
