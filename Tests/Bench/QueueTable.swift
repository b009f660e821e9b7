// The table of `waypost-bench queue`: 80 columns, the ratio to C last.

extension QueueReport {
    var table: String {
        var text =
            "\(machine.cpu), \(machine.cores) cores; \(machine.fileSystem), \(machine.disk)\n"
        text += "medians of \(rounds) rounds; both sides carry the same program's libraries\n"
        if bytesFigure == "wchar_per_row" {
            text +=
                "no bytes are counted on this file system: wchar of /proc/self/io instead\n"
        }
        text += section("100 sightings a commit", paced)
        text += section("full speed, a commit a second", fullSpeed)
        text += section("real time, a commit a second", live)
        text += "\n" + header("journal under a reader that never rests")
        text += row("rows/s", journal["rows_per_s"], nil)
        text += row("largest -wal, MiB", journal["journal_peak_bytes"].map { $0 / 1_048_576 }, nil)
        if let backlog { text += table(backlog) }
        text += "\n" + Row.table(summary)
        return text
    }

    private func section(_ title: String, _ sides: [Side: Figures]) -> String {
        let base = sides[.typed]
        var text = ""
        for (name, side) in [("accept", Side.queue), ("whole path", .path)] {
            guard let own = sides[side] else { continue }
            text += "\n" + header("\(name), \(title)")
            text += row("rows/s", own["rows_per_s"], base?["rows_per_s"])
            text += row("CPU us/row", own["cpu_us_per_row"], base?["cpu_us_per_row"])
            text += row("wake-ups/row", own["wake_ups_per_row"], base?["wake_ups_per_row"])
            text += row("bytes written/row", own[bytesFigure], base?[bytesFigure])
            let disk = "disk_bytes_per_row"
            // The whole path has a capture beside it, which is written first.
            if side == .queue {
                text += row("  at the disk, its file system's too", own[disk], base?[disk])
            }
            if side == .queue, let json = sides[.json], let bytes = json["record_bytes"] {
                let title = "  beside C with JSON rows of \(Self.text(bytes)) B"
                text += row(title, own[bytesFigure], json[bytesFigure])
            }
            text += row("memory, peak MB", megabytes(own, "peak"), megabytes(base, "peak"))
            text += row("memory, end MB", megabytes(own, "end"), megabytes(base, "end"))
        }
        return text
    }

    private func megabytes(_ figures: Figures?, _ name: String) -> Double? {
        figures?["resident_\(name)_bytes"].map { $0 / 1e6 }
    }

    private func table(_ backlog: Backlog) -> String {
        var text = "\n" + header("backlog of \(backlog.records) sightings")
        let size = backlog.fill["database_bytes"].map { $0 / 1e6 }
        text += row("database, MB", size, nil)
        text += row("made at rows/s", backlog.fill["rows_per_s"], nil)
        text += row("open, from the disk, ms", backlog.open["open_cold_ms"], nil)
        text += row("open, from the page cache, ms", backlog.open["open_warm_ms"], nil)
        text += row("close at once, ms", backlog.open["close_ms"], nil)
        for mark in BacklogSide.marks {
            let drain = "drain, to \(mark) %"
            text += row("\(drain), records/s", backlog.drain["at_\(mark)_records_per_s"], nil)
            text += row("  CPU us/record", backlog.drain["at_\(mark)_cpu_us_per_record"], nil)
            let peak = backlog.drain["at_\(mark)_resident_peak_bytes"].map { $0 / 1e6 }
            text += row("  memory so far, peak MB", peak, nil)
        }
        text += row("body bytes/record (gzip)", backlog.drain["body_bytes_per_row"], nil)
        return text
    }

    private func header(_ title: String) -> String { Self.line(title, "Waypost", "C", "ratio") }

    private func row(_ name: String, _ own: Double?, _ base: Double?) -> String {
        var ratio = "-"
        if let own, let base, base > 0 { ratio = Self.text(own / base, decimals: 2) }
        return Self.line(
            "  " + name,
            own.map { Self.text($0) } ?? "-",
            base.map { Self.text($0) } ?? "-",
            ratio
        )
    }

    static func line(_ name: String, _ cells: String...) -> String {
        var line = name + String(repeating: " ", count: max(0, 47 - name.count))
        for (cell, width) in zip(cells, [12, 12, 8]) {
            line += " " + String(repeating: " ", count: max(0, width - 1 - cell.count)) + cell
        }
        return line + "\n"
    }

    /// Three figures that count, or a given number of decimals.
    static func text(_ value: Double, decimals: Int? = nil) -> String {
        let decimals = decimals ?? (value.magnitude < 10 ? 2 : value.magnitude < 100 ? 1 : 0)
        guard decimals > 0 else { return "\(Int(value.rounded()))" }
        let scale = decimals == 1 ? 10 : 100
        let scaled = Int((value * Double(scale)).rounded())
        let rest = "\(scaled.magnitude % UInt(scale))"
        let zeros = String(repeating: "0", count: decimals - rest.count)
        return "\(value < 0 ? "-" : "")\(scaled.magnitude / UInt(scale)).\(zeros)\(rest)"
    }
}
