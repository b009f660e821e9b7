// The list of quarantined batches, for people and for scripts.
import Host
import JSON
import Queue
import Records

/// Renders quarantined batches as text of at most 80 columns, or as one JSON object.
package struct QuarantineList {
    private static let width = 80
    private static let indent = "        "
    private let batches: [QuarantinePage.Entry]

    package init(_ batches: [QuarantinePage.Entry]) {
        self.batches = batches
    }

    package var text: String {
        guard !batches.isEmpty else { return "nothing in quarantine\n" }
        let head = "ID      STREAM                        RECORDS  TRIES  WHEN (UTC)\n"
        let shown = runs.prefix(Self.maxRuns)
        let rest = batches.count - shown.reduce(0) { $0 + $1.count }
        let tail = rest > 0 ? "and \(rest) more batches: --json has all of them\n" : ""
        return head + shown.flatMap(lines).map { $0 + "\n" }.joined() + tail
    }

    /// The most runs that the text shows.
    private static let maxRuns = 100

    /// Groups neighbouring batches of one stream with the same message.
    ///
    /// A server that rejects everything rejects each record in a separate batch.
    private var runs: [ArraySlice<QuarantinePage.Entry>] {
        var runs: [ArraySlice<QuarantinePage.Entry>] = []
        for (place, batch) in batches.enumerated() {
            if let last = runs.last?.last, last.stream == batch.stream,
                last.message == batch.message
            {
                runs[runs.count - 1] = batches[runs[runs.count - 1].startIndex...place]
            } else {
                runs.append(batches[place...place])
            }
        }
        return runs
    }

    /// The first batch of a run, and how many more are like it.
    private func lines(_ run: ArraySlice<QuarantinePage.Entry>) -> [String] {
        guard let first = run.first, let last = run.last else { return [] }
        guard run.count > 1 else { return lines(first) }
        let records = run.dropFirst().reduce(0) { $0 + $1.records }
        return lines(first) + [
            "\(Self.indent)and \(run.count - 1) more like this one, up to \(last.number): \(counted(records, "record"))"
        ]
    }

    private func lines(_ batch: QuarantinePage.Entry) -> [String] {
        // A server's message must not control the terminal: `blanked` removes escape sequences.
        let first =
            "\(batch.number)".column(8) + batch.stream.column(30) + "\(batch.records)".column(9)
            + "\(batch.attempts)".column(7) + minute(of: batch.quarantinedAt)
        return [first]
            + ["key " + batch.key.blanked, "first record " + batch.firstId.blanked]
            .map { String((Self.indent + $0).prefix(Self.width)) }
            + batch.message.wrapped(to: Self.width - Self.indent.count, breakingWords: true)
            .map { Self.indent + $0 }
    }

    /// The JSON object: `batches` is an array of objects with `number`, `key`, `stream`, `records`,
    /// `quarantined_at`, `attempts`, `words` and `first_id`.
    package var json: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.key("batches")
            json.array { json in
                for batch in batches { Self.write(batch, to: &json) }
            }
        }
        return json.bytes
    }

    private static func write(_ batch: QuarantinePage.Entry, to json: inout JSONWriter) {
        json.object {
            $0.field("number", batch.number)
            $0.field("key", batch.key)
            $0.field("stream", batch.stream)
            $0.field("records", Int64(batch.records))
            $0.field("quarantined_at", batch.quarantinedAt)
            $0.field("attempts", Int64(batch.attempts))
            $0.field("words", batch.message)
            $0.field("first_id", batch.firstId)
        }
    }
}
