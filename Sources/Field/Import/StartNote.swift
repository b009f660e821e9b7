// Writes waypost-ok.txt on the card: how a start went, for a person without a network.
import Glibc
package import Host
package import Status
import Upload

/// The file `waypost-ok.txt` on a card's FAT partition: removed at each start, written once after it.
package struct StartNote: Sendable {
    static let name = "waypost-ok.txt"

    private let folder: String
    private let paths: ImportPaths
    private let files: StepFiles

    package init(on folder: String, _ paths: ImportPaths, files: StepFiles = StepFiles()) {
        (self.folder, self.paths, self.files) = (folder, paths, files)
    }

    /// False if the card is not mounted, or only for reading.
    package var isPossible: Bool {
        (!paths.isListed(folder) || paths.isMountPoint(folder)) && access(folder, W_OK) == 0
    }

    private var path: String { "\(folder)/\(Self.name)" }

    /// Removes the note of the start before; throws a SystemError.
    package func clear() throws { try files.remove(path) }

    /// Writes the note; `report` is nil if the gateway does not answer.
    ///
    /// Why it did not start is then added to the file of errors. Throws a SystemError. Not renamed
    /// into place: on FAT, without a journal, a rename may leave two names for the same clusters.
    /// After a power cut the next start removes what there is.
    package func write(_ report: StatusReport?, at now: WallTime) throws {
        try files.write(path, Self.text(report, at: now), mode: 0o644)
        try files.sync(folder)
        if report == nil { try StartErrorFile.read(in: paths.runtime).map(add) }
    }

    /// Adds to the file of errors why the gateway did not start.
    private func add(_ failure: String) throws {
        let problem = CardFailure(
            file: "The gateway",
            "it does not start: \(failure)",
            "do what it says; if no more is known, log in and run: waypost doctor"
        )
        let owner = ServiceOwner(stateDirectory: paths.state)
        try CardReport(paths: paths, files: files, owner: owner).add(problem, on: folder)
    }

    /// Returns whether nothing more is worth waiting for: all sources work and the server answered.
    package static func isWhole(_ report: StatusReport, at now: WallTime) -> Bool {
        let isAnswered = report.upload.state == .noEndpoint || answer(report, at: now) != nil
        guard isAnswered, !report.isStarting, !report.sources.isEmpty else { return false }
        return report.sources.allSatisfy { name, source in
            // A sound's record may be long in the making; its level is known before.
            let isHeard = name == SourceName.audio.rawValue || source.lastRecordAt != nil
            return [.disabled, .scheduledOff].contains(source.state)
                || source.state == .loaded && isHeard
        }
    }

    /// Returns when the server last accepted something since the gateway started; nil if never.
    private static func answer(_ report: StatusReport, at now: WallTime) -> WallTime? {
        let started = now + .seconds(-report.daemon.uptimeS)
        return report.upload.lastSuccessAt.flatMap { $0 >= started ? $0 : nil }
    }
}

// MARK: Text

extension StartNote {
    /// Returns the text, with CRLF for any editor.
    static func text(_ report: StatusReport?, at now: WallTime) -> String {
        let foot = [
            "",
            "This file is written once, some minutes after each start, and says how it was then.",
            "A file waypost-errors.txt beside it says what is wrong with the files on this card.",
        ]
        let text = (report.map { lines($0, at: now) } ?? silent) + foot
        return text.map { printable($0, limit: 300) + "\r\n" }.joined()
    }

    private static let silent = [
        "Waypost does NOT run on this device, or does not answer.", "",
        "What to do: start the device again and wait five minutes. If it stays so, look at",
        "waypost-errors.txt beside this file, or log in and run: waypost doctor",
    ]

    private static func lines(_ report: StatusReport, at now: WallTime) -> [String] {
        let isGood = report.state == .healthy && isWhole(report, at: now)
        let head =
            isGood ? "All is well: this device runs." : "This device runs, but not all is well."
        var rows = [("Device", report.deviceId), ("Time", time(report, now))]
        for (name, title) in [
            (SourceName.beacons, "Beacons"), (.location, "Position"), (.audio, "Sound"),
        ] {
            guard let source = report.sources[name.rawValue] else { continue }
            rows.append((title, text(of: source, named: name)))
        }
        rows.append(("Server", server(report, now)))
        rows.append(("To upload", counted(report.pending, "record")))
        return [head, ""] + rows.map { ($0.0 + ":").column(11) + $0.1 } + reasons(report)
    }

    private static func time(_ report: StatusReport, _ now: WallTime) -> String {
        let isSet = report.clock.state == .synced
        let doubt = isSet ? "" : ", but no time server and no GNSS has set the clock yet"
        return "\(now.rfc3339.prefix(10)) \(minute(now))\(doubt)"
    }

    private static func minute(_ time: WallTime) -> String {
        "\(time.rfc3339.dropFirst(11).prefix(5)) UTC"
    }

    private static func text(of source: StatusReport.Source, named name: SourceName) -> String {
        switch source.state {
        case .disabled, .scheduledOff: return source.reason ?? "switched off in the configuration"
        case .loaded where name == .audio: return source.detail
        case .loaded:
            let last = source.lastRecordAt.map { "last one at \(minute($0))" } ?? "NONE yet"
            return [last, source.detail].filter { !$0.isEmpty }.joined(separator: "; ")
        case .error: return "does NOT work: \(source.reason ?? source.code?.rawValue ?? "unknown")"
        case .loading, .unknown: return "NOT ready yet"
        }
    }

    private static func server(_ report: StatusReport, _ now: WallTime) -> String {
        if let at = answer(report, at: now) {
            return "accepted records at \(minute(at))"
        }
        if report.upload.state == .noEndpoint { return "none is configured" }
        let failures = report.streams.values.compactMap(\.lastError)
        guard let last = failures.max(by: { $0.at < $1.at }) else {
            return "has NOT answered yet (\(report.upload.state.rawValue))"
        }
        return "has NOT accepted anything yet: \(last.message)"
    }

    private static func reasons(_ report: StatusReport) -> [String] {
        guard !report.reasons.isEmpty else { return [] }
        let more = report.reasons.count - 8
        return ["", "What is not well:"] + report.reasons.prefix(8).map { "- \($0)" }
            + (more > 0 ? ["- and \(more) more"] : [])
    }
}
