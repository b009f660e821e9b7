// An upload over a connection that this program can slow down, cut or leave.
import HTTP
import Host

/// A request whose bytes go out as the caller sends them; the connection ends with the object.
final class PartialUpload {
    private var stream: ByteStream
    private let trial: ConformanceTrial
    private let body: [UInt8]
    /// Its words in the report.
    private let what: String

    /// Connects, and sends the header of the batch in rows.
    init(_ batch: TrialBatch, _ trial: ConformanceTrial) throws {
        (self.trial, body) = (trial, batch.rows)
        what = "POST /api/ingest, \(batch.ids.count) records in pieces, key \(batch.key)"
        trial.begin(what)
        stream = try trial.connect()
        var lines = trial.headers(of: batch) + ["Content-Length: \(body.count)"]
        lines.insert("POST \(trial.path("/api/ingest")) HTTP/1.1", at: 0)
        lines.insert("Host: \(trial.host)", at: 1)
        try send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
    }

    /// Sends the bytes of a part of the body, given in eighths.
    func send(eighths: Range<Int>) throws {
        let (start, end) = (
            eighths.lowerBound * body.count / 8, eighths.upperBound * body.count / 8
        )
        try send(Array(body[start..<end]))
    }

    /// Ends the check; other requests may have come since this one began.
    func failed(_ expected: String, _ got: String) -> CheckEnd {
        trial.begin(what)
        return trial.failed(expected, got: got)
    }

    private func send(_ bytes: [UInt8]) throws {
        do {
            try stream.write(bytes, within: trial.patience, until: trial.stop)
        } catch { throw failed("the body to be read", error.message) }
    }

    /// Waits for the status of the answer.
    func status() throws -> Int {
        let end = ContinuousClock.now + trial.patience
        var bytes: [UInt8] = []
        while bytes.count < 12 {
            var entries = [PollEntry(stream.descriptor)]
            let left = end - ContinuousClock.now
            guard left > .zero else { throw failed("an answer", "no answer") }
            _ = Host.wait(for: &entries, timeout: left)
            do { bytes += try stream.read(atMost: 4096) ?? [] } catch {
                throw failed("an answer", error.message)
            }
        }
        return Int(String(decoding: bytes[9..<12], as: UTF8.self)) ?? 0
    }
}
