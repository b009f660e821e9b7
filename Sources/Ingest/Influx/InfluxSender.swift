// Sends points, and finds those that InfluxDB refuses.
import Host

/// What became of some points.
struct InfluxVerdict {
    var taken: Int64 = 0
    var refused: Int64 = 0
    /// Of the last refusal.
    var words = ""
    /// The server has shown that it judges points, not whatever is sent to it.
    fileprivate var isSure = false
}

/// Used by one thread.
struct InfluxSender: Sendable {
    let target: InfluxTarget
    let userAgent: String
    /// Of one request.
    var limit = Duration.seconds(60)

    /// Returns when each point is taken, or is refused by itself.
    ///
    /// InfluxDB takes the others of a request, or takes none, and not always says so: halves are sent until a refused
    /// point stands alone. Points that it has already are the same in it. Throws Trouble where they may not have
    /// arrived, and where the server refuses all without speaking of points.
    func send(_ lines: [String], until stop: StopSignal) throws -> InfluxVerdict {
        var verdict = InfluxVerdict()
        guard !lines.isEmpty else { return verdict }
        try send(lines[...], &verdict, until: stop)
        guard verdict.isSure else { throw Trouble("InfluxDB refuses all: \(verdict.words)") }
        return verdict
    }

    private func send(
        _ lines: ArraySlice<String>,
        _ verdict: inout InfluxVerdict,
        until stop: StopSignal
    ) throws {
        let answer = try WebPost.exchange(
            lines.joined(separator: "\n"),
            headers: ["Content-Type: text/plain; charset=utf-8"]
                + [target.authorization()].compactMap { $0 },
            to: target.url,
            as: userAgent,
            limit: limit,
            until: stop,
            name: "InfluxDB"
        )
        let words = printable(answer.text, limit: 300)
        switch answer.status {
        case 200...299:
            verdict.taken += Int64(lines.count)
            verdict.isSure = true
        case 400, 413, 422:
            guard lines.count > 1, Self.dropped(answer.text) != lines.count else {
                verdict.refused += Int64(lines.count)
                verdict.words = "\(answer.status) \(words)"
                verdict.isSure =
                    verdict.isSure || answer.status == 413 || Self.isAboutPoints(answer.text)
                return
            }
            let middle = lines.startIndex + lines.count / 2
            try send(lines[..<middle], &verdict, until: stop)
            try send(lines[middle...], &verdict, until: stop)
        default:
            throw Trouble("InfluxDB answered \(answer.status) \(words)")
        }
    }

    /// `partial write: … dropped=3`, as InfluxDB 1 and 2 say it.
    private static func dropped(_ text: String) -> Int? {
        let parts = text.split(separator: "dropped=", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        return Int(parts[1].prefix { $0.isASCII && $0.isNumber })
    }

    private static func isAboutPoints(_ text: String) -> Bool {
        ["partial write", "field type", "unable to parse", "line protocol"].contains {
            text.contains($0)
        }
    }
}
