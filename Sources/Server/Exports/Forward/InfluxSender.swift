// Sends points, and isolates those that InfluxDB refuses.
import HTTP
package import Host
import ServerWeb

/// The result of sending points.
package struct InfluxVerdict {
    var taken: Int64 = 0
    package var refused: Int64 = 0
    /// The text of the last refusal.
    package var words = ""
    /// A point that was accepted; sending it again changes nothing.
    var witness: String?
    /// Points refused with an answer that does not mention points.
    fileprivate var doubtful: [String] = []
}

/// The server refuses everything without a reason, which says nothing about the points.
struct InfluxError: Error, CustomStringConvertible {
    var words: String

    var description: String { "InfluxDB refuses every request: \(words)" }
}

/// Sends points to one InfluxDB; used by one thread.
package struct InfluxSender: Sendable {
    package let target: InfluxTarget
    package let userAgent: String
    /// The time limit of one request.
    package let limit: Duration

    package init(target: InfluxTarget, userAgent: String, limit: Duration = .seconds(60)) {
        (self.target, self.userAgent, self.limit) = (target, userAgent, limit)
    }

    /// Sends points; returns when each is accepted, or refused on its own.
    ///
    /// InfluxDB accepts the good points of a request or none of them, and does not always say
    /// which. Refused requests are therefore halved until a refused point is alone. If an answer
    /// does not mention points, the refusal counts only if it repeats and `witness`, a point
    /// accepted before, is accepted after it. Throws `InfluxError` if the witness is refused,
    /// and a `Failure` if the points may not have arrived.
    package func send(_ lines: [String], witness: String?, until stop: StopSignal) throws
        -> InfluxVerdict
    {
        var verdict = InfluxVerdict(witness: witness)
        guard !lines.isEmpty else { return verdict }
        try send(lines[...], &verdict, until: stop)
        for line in verdict.doubtful { try settle(line, &verdict, until: stop) }
        let settled = verdict.taken + verdict.refused
        mustHold(settled == Int64(lines.count), "each point is accepted or refused, once")
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
        guard let witness = verdict.witness else { throw InfluxError(words: verdict.words) }
        if let refusal = try refusal([line], until: stop) {
            verdict.words = Self.words(refusal)
            guard try self.refusal([witness], until: stop) == nil else {
                throw InfluxError(words: verdict.words)
            }
            verdict.refused += 1
        } else {
            verdict.taken += 1
        }
    }

    /// Sends points once; returns the answer if it refuses them, nil if they are accepted.
    ///
    /// Throws a `Failure` for any other answer.
    private func refusal(_ lines: ArraySlice<String>, until stop: StopSignal) throws -> Answer? {
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
        // InfluxDB answers with an empty body; a body comes from another server or a captive
        // portal.
        case 200...299 where answer.text.allSatisfy(\.isWhitespace): return nil
        case 400, 413, 422: return answer
        default: throw Failure("InfluxDB answered \(Self.words(answer))")
        }
    }

    private static func words(_ answer: Answer) -> String {
        "\(answer.status) \(printable(answer.text, limit: 300))"
    }

    /// Parses `partial write: … dropped=3`, as InfluxDB 1 and 2 write it.
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

extension Answer {
    /// The beginning of the body.
    fileprivate var text: String { String(decoding: body, as: UTF8.self) }
}
