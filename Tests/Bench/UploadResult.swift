// The result of `waypost-bench upload`: a table for people, an object for programs.
import HTTP
import JSON
import Queue
import Records
import Upload

/// The figures of one run of the bench.
struct UploadResult {
    /// One backlog with one compression.
    struct Case {
        var stream: Stream
        var rows: Int
        var compression: Compression
        var bodies: Figures
        var waypost: Figures
        var curl: Figures

        /// Both sides under the same names, per second and per record.
        var sides: (waypost: Figures, curl: Figures) {
            let seconds = Double(rows) / max(waypost["rows_per_s"] ?? 0, 1e-9)
            var own = rates(seconds)
            own["cpu_us_per_record"] = waypost["cpu_us_per_row"]
            own["resident_peak_bytes"] = waypost["resident_peak_bytes"]
            own["resident_end_bytes"] = waypost["resident_end_bytes"]
            var other = rates(curl["wall_s"] ?? 0)
            other["cpu_us_per_record"] = (curl["cpu_s"] ?? 0) * 1e6 / Double(rows)
            other["resident_peak_bytes"] = curl["resident_peak_bytes"]
            return (own, other)
        }

        private func rates(_ seconds: Double) -> Figures {
            let seconds = max(seconds, 1e-9)
            var figures = Figures()
            figures["wall_s"] = seconds
            figures["records_per_s"] = Double(rows) / seconds
            figures["wire_mb_per_s"] = (bodies["body_bytes"] ?? 0) / 1e6 / seconds
            figures["json_mb_per_s"] = (bodies["plain_bytes"] ?? 0) / 1e6 / seconds
            return figures
        }

        /// Waypost's speed over curl's.
        var ratio: Double {
            let (own, other) = sides
            return (own["records_per_s"] ?? 0) / max(other["records_per_s"] ?? 0, 1e-9)
        }
    }

    var machine: Machine
    var rounds: Int
    /// MiB of a body before compression.
    var batch: Int
    /// Megabits per second of the line to the server; 0: plain loopback.
    var link: Int
    var cases: [Case] = []

    init(machine: Machine, rounds: Int, batch: Int, link: Int) {
        self.machine = machine
        self.rounds = rounds
        self.batch = batch
        self.link = link
    }

    var summary: [Row] { cases.flatMap { $0.rows(isOverLine: link > 0) } }
}

extension UploadResult.Case {
    /// On loopback nothing but the processor is the limit: there the work a record is looked at, over a line the speed.
    fileprivate func rows(isOverLine: Bool) -> [Row] {
        let title = "\(stream.unit), \(compression.rawValue)"
        let (own, other) = sides
        let speed = Row(
            "speed, \(title)",
            "records/s",
            own["records_per_s"],
            beside: ("curl", other["records_per_s"]),
            goal: isOverLine ? Row.Goal(limit: 0.9, isOfRatio: true, isLeast: true) : nil
        )
        guard !isOverLine else { return [speed] }
        return [
            speed, Row("CPU, \(title)", "us/record", own["cpu_us_per_record"]),
            Row("on the wire, \(title)", "B/record", (bodies["body_bytes"] ?? 0) / Double(rows)),
        ]
    }
}

// MARK: For people

extension UploadResult {
    /// 80 columns, the ratio to curl last.
    var table: String {
        var text =
            "\(machine.cpu), \(machine.cores) cores; \(machine.fileSystem), \(machine.disk)\n"
        text += "medians of \(rounds) rounds; batches of at most \(batch) MiB of JSON\n"
        text += "curl posts the same bodies from files, made and compressed beforehand\n"
        text += link > 0 ? "over a line of \(link) Mbit/s\n" : "over loopback as it is\n"
        for one in cases { text += Self.section(one) }
        text += "\n" + Row.table(summary)
        return text
    }

    private static func section(_ one: Case) -> String {
        let title = "\(one.rows) \(one.stream.unit), \(one.compression.rawValue)"
        var text = "\n" + QueueReport.line(title, "Waypost", "curl", "ratio")
        let (own, other) = one.sides
        for (name, figure, unit) in [
            ("MB/s on the wire", "wire_mb_per_s", 1.0),
            ("MB/s before compression", "json_mb_per_s", 1.0),
            ("records/s", "records_per_s", 1.0), ("CPU us/record", "cpu_us_per_record", 1.0),
            ("memory, peak MB", "resident_peak_bytes", 1e6),
        ] {
            let ratio = (own[figure] ?? 0) / max(other[figure] ?? 0, 1e-9)
            text += QueueReport.line(
                "  " + name,
                QueueReport.text((own[figure] ?? 0) / unit),
                QueueReport.text((other[figure] ?? 0) / unit),
                QueueReport.text(ratio, decimals: 2)
            )
        }
        let size = (one.bodies["body_bytes"] ?? 0) / Double(one.rows)
        let plain = (one.bodies["plain_bytes"] ?? 0) / Double(one.rows)
        text += QueueReport.line("  bytes/record, of JSON", QueueReport.text(plain), "", "")
        text += QueueReport.line("  bytes/record, on the wire", QueueReport.text(size), "", "")
        text += QueueReport.line("  requests", "\(Int(one.bodies["bodies"] ?? 0))", "", "")
        return text
    }
}

// MARK: For programs

extension UploadResult {
    /// One object on one line.
    var json: String {
        Row.report("upload", summary) {
            machine.write(to: &$0)
            $0.field("rounds", Int64(rounds))
            $0.field("batch_mib", Int64(batch))
            $0.field("link_mbit", Int64(link))
            $0.key("cases")
            $0.array { for one in cases { Self.write(one, to: &$0) } }
        }
    }

    private static func write(_ one: Case, to json: inout JSONWriter) {
        let (own, other) = one.sides
        json.object { object in
            object.field("records", one.stream == .audio ? "sound" : "sightings")
            object.field("count", Int64(one.rows))
            object.field("compression", one.compression.rawValue)
            for (name, figures) in [("bodies", one.bodies), ("waypost", own), ("curl", other)] {
                object.key(name)
                figures.write(to: &object)
            }
            object.field("ratio", one.ratio)
        }
    }
}
