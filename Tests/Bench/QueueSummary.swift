// The main figures of `waypost-bench queue`, in a few rows.

extension QueueReport {
    var summary: [Row] {
        var rows = [bytes]
        rows += path(
            "at a site's pace, 143 sightings/s",
            live,
            goal: Row.Goal(limit: 1.6, isOfRatio: true)
        )
        rows.append(
            row("wake-ups, at a site's pace", "a sighting", live, .path, "wake_ups_per_row")
        )
        rows += path("100 a commit", paced)
        rows += path("at full speed, a commit a second", fullSpeed)
        rows.append(row("the same", "sightings/s", fullSpeed, .path, "rows_per_s"))
        rows.append(
            row(
                "CPU of storing alone, at full speed",
                "us/sighting",
                fullSpeed,
                .queue,
                "cpu_us_per_row"
            )
        )
        rows.append(
            Row(
                "journal under a reader that never rests",
                "MiB",
                (journal["journal_peak_bytes"] ?? 0) / 1_048_576,
                goal: Row.Goal(limit: 16)
            )
        )
        return rows + (backlog.map(Self.rows) ?? [])
    }

    /// At the disk where it counts, else as the process sees it.
    private var bytes: Row {
        let figure =
            (paced[.queue]?["disk_bytes_per_row"] ?? 0) > 0 ? "disk_bytes_per_row" : bytesFigure
        var row = row("bytes at the disk, 100 a commit", "B/sighting", paced, .queue, figure)
        row.goal = Row.Goal(limit: 175)
        return row
    }

    private func path(_ title: String, _ sides: [Side: Figures], goal: Row.Goal? = nil) -> [Row] {
        guard sides[.path] != nil else { return [] }
        var row = row(
            "CPU of the whole path, \(title)",
            "us/sighting",
            sides,
            .path,
            "cpu_us_per_row"
        )
        row.goal = goal
        return [row]
    }

    private func row(
        _ what: String,
        _ unit: String,
        _ sides: [Side: Figures],
        _ side: Side,
        _ figure: String
    ) -> Row {
        Row(what, unit, sides[side]?[figure], beside: ("C", sides[.typed]?[figure]))
    }

    private static func rows(_ backlog: Backlog) -> [Row] {
        let size = "\(backlog.records) pending sightings"
        return [
            Row(
                "start with \(size)",
                "ms",
                backlog.open["open_cold_ms"],
                goal: Row.Goal(limit: 300)
            ),
            Row("bodies of \(size), CPU", "us/record", backlog.drain["cpu_us_per_row"]),
        ]
    }
}
