// Batches as a gateway sends them, under a device of their own.
import Foundation
import Host

/// A batch with fresh ids, in rows or in columns.
struct TrialBatch {
    var device: String
    var ids: [String]
    var key = UUID().uuidString.lowercased()
    var firstSequence = 1
    var time = SystemClock().wall().rfc3339
    /// More members of each record, each after a comma.
    var more = ""
    /// The elements of `data`, if they are not made of the ids.
    var data: String?

    /// A batch of `count` records; their ids count up in the last 12 hexadecimal digits.
    init(device: String, count: Int) {
        self.device = device
        let head = UUID().uuidString.lowercased().prefix(24)
        let first = Int.random(in: 0..<1 << 40)
        ids = (first..<first + count).map { head + String(format: "%012x", $0) }
    }

    /// The same records under another key, as after a requeue.
    func again(_ range: Range<Int>? = nil) -> Self {
        var batch = self
        batch.key = UUID().uuidString.lowercased()
        batch.ids = Array(ids[range ?? ids.indices])
        return batch
    }

    var rows: [UInt8] {
        let records = ids.enumerated().map {
            #"{"id":"\#($1)","timestamp":"\#(time)","note":"Grüße ✓","clock":"synced"\#(more)}"#
        }
        return body(#""data":[\#(data ?? records.joined(separator: ","))]"#)
    }

    var columns: [UInt8] { body(#""columns":\#(columns(steps: ids.count - 1))"#) }

    /// Columns whose members have different lengths.
    var brokenColumns: [UInt8] { body(#""columns":\#(columns(steps: ids.count + 4))"#) }

    private func columns(steps count: Int) -> String {
        let ones = Array(repeating: "1", count: count).joined(separator: ",")
        let zeros = Array(repeating: "0", count: ids.count - 1).joined(separator: ",")
        return """
            {"count":\(ids.count),"members":{"id":{"id":"\(ids.first ?? "")","steps":[\(ones)]},\
            "timestamp":{"time":"\(time)","ms":[\(zeros)]},"value":{"from":1,"steps":[\(ones)],"scale":1},\
            "clock":{"const":"synced"},"kind":{"of":["a"],"at":[0,\(zeros)]},\
            "note":{"values":["Grüße ✓"],"has":[[0,1]]}}}
            """
    }

    private func body(_ records: String) -> [UInt8] {
        let text = """
            {"stream_name":"conformance","device_id":"\(device)",\(records),\
            "batch_metadata":{"total_records":\(ids.count),"app_version":"conformance",\
            "batch_id":"\(key)","first_sequence":\(firstSequence),\
            "last_sequence":\(firstSequence + ids.count - 1),"sent_at":"\(time)","clock":"synced"}}
            """
        return Array(text.utf8)
    }
}
