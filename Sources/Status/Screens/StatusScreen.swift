// The text of `waypost status`: as wide as the terminal, and whole in a pipe.
package import Host
import Records
import Upload

/// Renders a status report as text for a terminal.
package struct StatusScreen {
    private let width: Int
    private let rows: Int
    private let scrolls: Bool
    private let report: StatusReport
    private let isLive: Bool
    private let now: WallTime
    private let isColoured: Bool

    /// Creates a screen of `columns`; without, as in a pipe, nothing is cut or wrapped.
    ///
    /// `isLive` is false for the last known report of a daemon that cannot be asked; ages are
    /// counted from `now`. Without `scrolls` all has to fit into `rows`.
    package init(
        _ report: StatusReport,
        isLive: Bool = true,
        now: WallTime,
        isColoured: Bool,
        columns: Int = .max,
        rows: Int = 24,
        scrolls: Bool = true
    ) {
        (width, self.rows, self.scrolls) = (max(20, columns), max(1, rows), scrolls)
        self.report = report
        self.isLive = isLive
        self.now = now
        self.isColoured = isColoured
    }

    package var text: String {
        var lines = lines
        let more = lines.count - rows + 1
        if scrolls, more > 0 {
            // With the prompt below, the first line has scrolled away.
            lines += ["", headline]
        } else if !scrolls, more > 1 {
            lines.removeLast(more)
            lines.append(fit("… \(more) more lines: `waypost status --json` has all"))
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private var lines: [String] {
        let blocks = [sources, streams, foot].flatMap { [""] + $0 }.map(fit)
        // Leave room for the heading of the errors and the count of those not shown.
        let errorLines = report.recentErrors.isEmpty ? 0 : 2
        let room = scrolls ? .max : max(rows - 1 - blocks.count - errorLines, 4)
        let top = [headline] + whole(report.reasons, room: room, atLeast: 1) + blocks
        return top + errors(room: scrolls ? .max : rows - top.count)
    }

    private var headline: String {
        let daemon = report.daemon
        let (resident, own) = (roughSize(daemon.rssBytes), roughSize(daemon.privateBytes))
        let long = Int(exactly: daemon.cpuS.rounded()).flatMap { $0 < 100 ? nil : span($0) }
        let cpu = long ?? "\(daemon.cpuS) s"
        let running = "up \(span(daemon.uptimeS)), \(resident) memory (\(own) private), \(cpu) CPU"
        let last = daemon.running == false ? "not running, as last seen" : "as last seen"
        let figures = isLive ? running : last
        let line = "waypost \(report.version)  \(report.state.rawValue)  \(figures)"
        let coloured = "waypost \(report.version)  \(colour(report.state))  \(figures)"
        return fit(line) == line ? coloured : fit(line)
    }

    /// Returns the first messages that fit into `room` lines, and how many are left out.
    ///
    /// A message is shown whole or not at all, because it ends with its remedy.
    private func whole(_ messages: [String], room: Int, atLeast least: Int = 0) -> [String] {
        let wrapped = messages.map { message in
            message.wrapped(to: width - 4, breakingWords: true).enumerated()
                .map { ($0.offset == 0 ? "  " : "    ") + $0.element }
        }
        let all = wrapped.flatMap { $0 }
        guard all.count > room else { return all }
        var (lines, shown) = ([String](), 0)
        for message in wrapped {
            guard shown < least || lines.count + message.count < room else { break }
            lines += message
            shown += 1
        }
        let more = messages.count - shown
        return lines + (more > 0 ? ["  and \(more) more: `waypost status --json`"] : [])
    }

    private var sources: [String] {
        ["SOURCE    STATE     LAST      RATE/S  RECORDS  DETAIL"]
            + ["beacons", "location", "audio"].compactMap { name in
                guard let source = report.sources[name] else { return nil }
                let isRunning = source.state == .loaded
                let state =
                    isRunning
                    ? "running" : source.state == .scheduledOff ? "off" : source.state.rawValue
                let detail =
                    isRunning
                    ? source.detail
                    : [source.code?.rawValue, source.reason].compactMap { $0 }.joined(
                        separator: " "
                    )
                return fit(
                    name.column(10) + state.column(10) + age(source.lastRecordAt).column(10)
                        + "\(rounded(source.ratePerS, 10))".rightColumn(6) + "  "
                        + "\(source.records)".rightColumn(7)
                        + "  "
                        + detail
                )
            }
    }

    private var streams: [String] {
        // Beside the other columns, which take 57.
        let longest = report.streams.keys.map(\.count).max() ?? 0
        let column = max(23, min(longest + 1, width - 57))
        return ["STREAM".column(column) + " PENDING  UPLOADED  LAST OK   LAST ERROR"]
            + report.streams.sorted { $0.key < $1.key }.map { name, stream in
                let failure = stream.lastError.map { "\(Failure($0.message, code: $0.code))" }
                return fit(
                    name.column(column) + " " + "\(stream.pending)".rightColumn(7) + "  "
                        + "\(stream.uploaded)".rightColumn(8) + "  "
                        + age(stream.lastSuccessAt).column(10)
                        + (failure ?? stream.waitsFor.map { "waits: \($0)" } ?? "-")
                )
            }
    }

    private var foot: [String] {
        let storage = report.storage
        let resending = report.resending
        let more: [String] = held + disk + losses
        let next = report.upload.nextSyncAt
            .map { ", next in \(span(max(0, Int(($0.milliseconds - now.milliseconds) / 1000))))" }
        return [
            fit(
                "storage   \(storage.state.rawValue): database \(roughSize(storage.databaseBytes)), "
                    + (storage.roomDays.map { "room for \(roughDays($0)), " } ?? "")
                    + "\(roughSize(storage.freeBytes)) free, \(roughSize(storage.writtenBytes)) written"
            )
        ] + more + [
            fit("clock     \(report.clock.state.rawValue)"),
            fit(
                "upload    \(report.upload.state.rawValue)\(isLive ? next ?? "" : "")"
                    + ", \(spent) today"
                    + (resending > 0 ? ", resending: \(resending) left" : "")
            ),
        ] + outputs + (report.mqttIn.map { [fit("mqtt in   \($0.line)")] } ?? [])
    }

    private var held: [String] {
        report.streams.values.compactMap(\.heldSound).filter { $0.chunks > 0 }.map { sound in
            let span = sound.from.flatMap { from in
                sound.to.map { ", " + period(from.rfc3339, $0.rfc3339) }
            }
            let size = roughSize(Int64(sound.bytes))
            return fit("held      \(counted(sound.chunks, "chunk")) of sound, \(size)\(span ?? "")")
        }
    }

    private func roughDays(_ days: Double) -> String {
        days < 2 ? "\(Int(days * 24)) h" : "\(Int(days)) days"
    }

    private var outputs: [String] {
        let shown = (report.outputs ?? [:]).filter { name, output in
            // Without a program that listens it needs no line.
            name != "listen" || output.clients > 0 || output.reason != nil
        }
        return shown.sorted { $0.key < $1.key }.flatMap { name, output in
            let failure = output.lastError.map { "\(Failure($0.message, code: $0.code))" }
            let detail = [output.detail, output.peer.isEmpty ? "" : failure ?? ""]
                .flatMap { $0.wrapped(to: width - 10, breakingWords: true) }
            return [fit(name.column(10) + summary(of: output))]
                + detail.map { "".column(10) + $0 }
        }
    }

    private func summary(of output: StatusReport.Output) -> String {
        let figures = "\(output.sent) sent, \(output.dropped) dropped"
        if !output.peer.isEmpty {
            return "\(output.state) to \(output.peer): \(figures)"
        }
        let state = output.state == "loaded" ? "running" : output.state
        let errors = output.errors > 0 ? ", \(counted(output.errors, "error"))" : ""
        return "\(state), \(counted(output.clients, "client")), \(figures)\(errors)"
    }

    private var spent: String {
        guard let budget = report.upload.budget else { return roughSize(report.upload.bytesToday) }
        return "\(roughSize(budget.spentBytes)) of \(roughSize(budget.bytes))"
    }

    private var disk: [String] {
        guard let disk = report.disk, let pace = disk.bytesADay, let years = disk.years
        else { return [] }
        let own = disk.ownBytesADay.map { " (\(roughSize($0)) ours)" } ?? ""
        return [
            fit(
                "disk      \(disk.name) \(roughSize(disk.sizeBytes)): \(roughSize(pace))/day\(own), "
                    + "\(years) years to \(roughSize(disk.enduranceBytes))"
            )
        ]
    }

    private var losses: [String] {
        report.losses.map { loss in
            fit(
                "lost      \(loss.records) of \(loss.stream), \(loss.kind), "
                    + period(loss.from.rfc3339, loss.to.rfc3339)
            )
        }
    }

    private func errors(room: Int) -> [String] {
        guard !report.recentErrors.isEmpty else { return [] }
        let messages = report.recentErrors.map { error in
            let time = error.at.rfc3339.dropFirst(11).prefix(8)
            let times = error.count > 1 ? " (\(error.count) times)" : ""
            return "\(time)\(times) \(Failure(error.message, code: error.code))"
        }
        return ["errors (times in UTC)"] + whole(messages, room: room - 1)
    }

    // MARK: Text

    private func colour(_ state: StatusReport.Health) -> String {
        guard isColoured else { return state.rawValue }
        let code =
            switch state {
            case .healthy: 32
            case .degraded: 33
            case .critical, .unknown: 31
            }
        return "\u{1B}[1;\(code)m\(state.rawValue)\u{1B}[0m"
    }

    private func age(_ wall: WallTime?) -> String {
        guard let wall else { return "never" }
        let seconds = Int((now.milliseconds - wall.milliseconds) / 1000)
        // The clock was set back in between, or is behind after a power cut.
        if seconds < -60 { return "unknown" }
        let age = span(max(0, seconds))
        // "23 min ago" does not fit into the column.
        return age.count < 6 ? age + " ago" : age
    }

    private func fit(_ line: String) -> String {
        let printable = line.blanked
        return printable.count <= width
            ? printable : String(printable.prefix(width - 1)) + "…"
    }
}
