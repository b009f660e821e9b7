// Bodies that are slow, cut, too large, refused in part, or hostile.
import Foundation
import HTTP
import Host

extension ConformanceCheck {
    static let hostile: [String: Body] = [
        "slow": {
            let batch = $0.batch()
            let upload = try PartialUpload(batch, $0)
            for eighth in 0..<8 {
                _ = $0.stop.sleep(for: $0.patience / 20)
                try upload.send(eighths: eighth..<eighth + 1)
            }
            let status = try upload.status()
            if !(200...299).contains(status) { throw upload.failed("2xx", "HTTP \(status)") }
            try $0.expectKnown(batch)
        },
        "beside": {
            let upload = try PartialUpload($0.batch(), $0)
            try upload.send(eighths: 0..<4)
            $0.pause()
            try $0.expectAccepted($0.upload($0.batch()))
            try upload.send(eighths: 4..<8)
            _ = try upload.status()
        },
        "cut": {
            let batch = $0.batch()
            try PartialUpload(batch, $0).send(eighths: 0..<5)
            $0.pause()
            try $0.expectNew($0.retry(batch), 3)
            try $0.expectKnown(batch)
        },
        "cut-gzip": {
            try $0.needs($0.inflatesGzip, "the server does not inflate gzip")
            let batch = $0.batch()
            var compressor = PieceCompressor(.gzip)
            let whole = try compressor.receive(batch.rows, isLast: true)
            let half = RequestBody(Array(whole.prefix(whole.count / 2)))
            let answer = try $0.upload(half, "half of gzip", of: batch, coding: "gzip")
            try $0.expect(answer, 400, 422)
        },
        "too-large": {
            guard let limit = $0.verified?.maxBody, (1..<1 << 28).contains(limit) else {
                throw CheckEnd.skipped("the server does not report max_body")
            }
            try $0.expect(padded($0, to: limit + 1), 413)
        },
        "64-mb": {
            try $0.expectFinal(padded($0, to: 64 << 20), 413)
        },
        "inflated": {
            try $0.needs($0.inflatesGzip, "the server does not inflate gzip")
            let batch = $0.batch()
            var (compressor, bytes) = (PieceCompressor(.gzip), [UInt8]())
            let blank = [UInt8](repeating: 32, count: 1 << 20)
            for _ in 0...64 { bytes += try compressor.receive(blank) }
            bytes += try compressor.receive(batch.rows, isLast: true)
            let answer = try $0.upload(RequestBody(bytes), "65 MB", of: batch, coding: "gzip")
            try $0.expectFinal(answer, 413)
        },
        "bad-record": {
            let (batch, good) = ($0.batch(2), record("good-\($0.newDevice)"))
            try expectRefused($0, batch, [good, #"{"timestamp":"\#(batch.time)"}"#])
        },
        "rest": {
            let batch = $0.batch()
            var bad = batch
            bad.ids.append("of the bad record")
            bad.data = batch.ids.map(record).joined(separator: ",") + ",7"
            _ = try $0.upload(bad)
            try $0.expectAccepted($0.upload(batch.again()))
        },
        "json": {
            let batch = $0.batch()
            let rows = String(decoding: batch.rows, as: UTF8.self)
            let cut = String(rows.dropLast())
            for text in ["", "null", "[]", "\"\"", "{", cut, rows + "}", "<html>"] {
                try $0.expect($0.upload(text: text, of: batch.again()), 400, 422)
            }
        },
        "types": {
            let batch = $0.batch(1)
            for record in ["7", "null", "[]", #"{"id":7}"#, #"{"id":null}"#] {
                try expectRefused($0, batch.again(), [record])
            }
            let rows = String(decoding: batch.rows, as: UTF8.self)
            for member in [#""stream_name":"#, #""device_id":"#, #""data":"#] {
                let text = rows.replacingOccurrences(of: member, with: member + #"7,"was":"#)
                let answer = try $0.upload(text: text, of: batch.again())
                // 7 is another device_id than the token's.
                if $0.target.device != nil, answer.status == 403 { continue }
                try $0.expect(answer, 400, 422)
            }
        },
        "deep": {
            let deep = ["[", "]"].map { String(repeating: $0, count: 100_000) }.joined()
            try expectFinal($0, #","deep":\#(deep)"#)
        },
        "numbers": {
            for number in ["1e999", "-0", "0.1e-400", String(repeating: "9", count: 5000)] {
                try expectFinal($0, #","number":\#(number)"#)
            }
        },
        "texts": {
            let id = $0.newDevice
            for text in [#"\u0000"#, #"\ud800"#, "'; DROP TABLE x; --", "../../x", "%s%n"] {
                try expectFinal($0, #","text":"\#(text)","\#(text)":1"#)
                try expectFinal($0, "", data: record("\(id)\(text)"))
            }
        },
        "serves": {
            try $0.expectNew($0.upload($0.batch()), 3)
        },
    ]

    /// Uploads a good batch with blanks behind it, which are made while they are sent.
    private static func padded(_ trial: ConformanceTrial, to length: Int) throws -> Answer {
        let batch = trial.batch()
        let rows = batch.rows
        let body = RequestBody(length: length) {
            var (left, isFirst) = (length - rows.count, true)
            return {
                defer { isFirst = false }
                if isFirst { return rows }
                let count = min(left, 1 << 18)
                left -= count
                return count > 0 ? [UInt8](repeating: 32, count: count) : nil
            }
        }
        return try trial.upload(body, "with blanks at its end", of: batch)
    }

    private static func record(_ id: String) -> String {
        #"{"id":"\#(id)","timestamp":"2026-11-21T04:30:07.123Z"}"#
    }

    private static func expectRefused(
        _ trial: ConformanceTrial,
        _ batch: TrialBatch,
        _ records: [String]
    ) throws {
        var batch = batch
        batch.data = records.joined(separator: ",")
        let answer = try trial.upload(batch)
        guard [400, 422].contains(answer.status) || answer.isAccepted && answer.reply.rejected > 0
        else { throw CheckEnd.failed("400, 422 or rejected above 0") }
    }

    private static func expectFinal(
        _ trial: ConformanceTrial,
        _ more: String,
        data: String? = nil
    ) throws {
        var batch = trial.batch(1)
        (batch.more, batch.data) = (more, data)
        try trial.expectFinal(trial.upload(batch), 400, 413, 422)
    }
}
