// Sends points, and finds those that InfluxDB refuses.
import Host

/// What became of some points.
struct InfluxVerdict {
    var taken: Int64 = 0
    var refused: Int64 = 0
    /// Of the last refusal.
    var words = ""
    /// A point that was taken; sent again, it changes nothing.
    var witness: String?
    /// Refused, without a word about points.
    fileprivate var doubtful: [String] = []
}

/// The server takes nothing and does not say why: that is no judgement on points.
struct InfluxRefusesAll: Error, CustomStringConvertible {
    var words: String

    var description: String { "InfluxDB refuses all: \(words)" }
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
    /// point stands alone. Where the answer does not speak of points, the refusal counts if it comes again and
    /// `witness`, a point that was taken before, is taken after it. Throws `InfluxRefusesAll` where it is not, and
    /// Trouble where the points may not have arrived.
    func send(_ lines: [String], witness: String?, until stop: StopSignal) throws -> InfluxVerdict {
        var verdict = InfluxVerdict(witness: witness)
        guard !lines.isEmpty else { return verdict }
        try send(lines[...], &verdict, until: stop)
        for line in verdict.doubtful { try settle(line, &verdict, until: stop) }
        return verdict
    }

    private func send(
        _ lines: ArraySlice<String>,
        _ verdict: inout InfluxVerdict,
        until stop: StopSignal
    ) throws {
        guard let refusal = try refusal(lines, until: stop) else {
            verdict.taken += Int64(lines.count)
            verdict.witness = lines.last
            return
        }
        guard lines.count > 1, Self.dropped(refusal.text) != lines.count else {
            verdict.words = Self.words(refusal)
            guard refusal.status == 413 || Self.isAboutPoints(refusal.text) else {
                return verdict.doubtful.append(contentsOf: lines)
            }
            verdict.refused += Int64(lines.count)
            return
        }
        let middle = lines.startIndex + lines.count / 2
        try send(lines[..<middle], &verdict, until: stop)
        try send(lines[middle...], &verdict, until: stop)
    }

    private func settle(
        _ line: String,
        _ verdict: inout InfluxVerdict,
        until stop: StopSignal
    ) throws {
        guard let witness = verdict.witness else { throw InfluxRefusesAll(words: verdict.words) }
        if let refusal = try refusal([line], until: stop) {
            verdict.words = Self.words(refusal)
            guard try self.refusal([witness], until: stop) == nil else {
                throw InfluxRefusesAll(words: verdict.words)
            }
            verdict.refused += 1
        } else {
            verdict.taken += 1
        }
    }

    /// The answer that refuses these points; nil where they are taken.
    ///
    /// Throws Trouble for one that does neither.
    private func refusal(_ lines: ArraySlice<String>, until stop: StopSignal) throws
        -> WebPost.Answer?
    {
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
        switch answer.status {
        // InfluxDB says nothing more: with a page, another server or a captive portal has said yes.
        case 200...299 where answer.text.allSatisfy(\.isWhitespace): return nil
        case 400, 413, 422: return answer
        default: throw Trouble("InfluxDB answered \(Self.words(answer))")
        }
    }

    private static func words(_ answer: WebPost.Answer) -> String {
        "\(answer.status) \(printable(answer.text, limit: 300))"
    }

    /// `partial write: … dropped=3`, as InfluxDB 1 and 2 say it.
    private static func dropped(_ text: String) -> Int? {
        let parts = text.split(separator: "dropped=", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        return Int(parts[1].prefix { $0.isASCII && $0.isNumber })
    }

    private static func isAboutPoints(_ text: String) -> Bool {
        ["partial write", "field type", "unable to parse", "line protocol"].contains {
            text.contains(text: $0)
        }
    }
}
