// The list of what is in quarantine, for people and for scripts.
internal import Host
internal import Queue
internal import Streams

/// Draws batches in quarantine as text of at most 80 columns, or as one JSON object.
package struct QuarantineList {
    private static let width = 80
    private static let indent = "        "
    private let batches: [QuarantinePage.Entry]

    package init(_ batches: [QuarantinePage.Entry]) {
        self.batches = batches
    }

    package var text: String {
        guard !batches.isEmpty else { return "nothing in quarantine\n" }
        let head = "ID      STREAM                        RECORDS  TRIES  WHEN\n"
        return head + batches.map { lines($0).joined(separator: "\n") + "\n" }.joined()
    }

    private func lines(_ batch: QuarantinePage.Entry) -> [String] {
        // A server's message goes to a terminal: nothing in it may steer that.
        let first =
            "\(batch.number)".column(8) + batch.stream.column(30) + "\(batch.records)".column(9)
            + "\(batch.attempts)".column(7) + minute(of: batch.quarantinedAt)
        return [first]
            + ["key " + batch.key.blanked, "first record " + batch.firstId.blanked]
            .map { String((Self.indent + $0).prefix(Self.width)) }
            + batch.message.wrapped(to: Self.width - Self.indent.count, breakingWords: true)
            .map { Self.indent + $0 }
    }

    /// `{"batches":[{"number":…,"key":…,"stream":…,"records":…,"quarantined_at":…,"attempts":…,"words":…,"first_id":…}]}`.
    package var json: [UInt8] {
        var json = JSONText()
        json.object { json in
            json.key("batches")
            json.array { json in
                for batch in batches { Self.write(batch, to: &json) }
            }
        }
        return json.bytes
    }

    private static func write(_ batch: QuarantinePage.Entry, to json: inout JSONText) {
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
