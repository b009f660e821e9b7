// A request body as a batch of records, each checked, each as it was sent.
import Foundation

/// One record: what the archive needs to know of it, and its own bytes.
struct IncomingRecord: Sendable {
    var id: String
    var time: RecordTime
    var bytes: [UInt8]
    /// Decoded sound and its format, for audio.
    var audio: (data: Data, format: String)?
}

/// A batch that is fit to be stored.
struct IncomingBatch: Sendable {
    var key: String
    var stream: String
    var device: String
    var records: [IncomingRecord]

    /// Throws a Refusal (422) that names the record and says why; nothing is to be stored then.
    init(key: String, body: [UInt8]) throws {
        guard let object = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
        else { throw Refusal(status: 422, reason: "the body is not a JSON object") }
        guard !JSONScanner.hasTrailingComma(body) else {
            throw Refusal(status: 422, reason: "the body is not JSON: a comma before a bracket")
        }
        guard let stream = object["stream_name"] as? String, Self.isName(stream) else {
            throw Refusal(status: 422, reason: "stream_name is missing or not a plain name")
        }
        guard let device = object["device_id"] as? String, Self.isName(device) else {
            throw Refusal(status: 422, reason: "device_id is missing or not a plain name")
        }
        guard let data = object["data"] as? [Any] else {
            throw Refusal(status: 422, reason: "data is missing or not an array")
        }
        let total = (object["batch_metadata"] as? [String: Any])?["total_records"] as? Int
        guard total == data.count else {
            throw Refusal(
                status: 422,
                reason: "total_records is \(total ?? -1), data has \(data.count)"
            )
        }
        let raw = JSONScanner.members(body[...]).last { $0.key == "data" }?.value ?? []
        let extents = JSONScanner.elements(raw)
        guard extents.count == data.count else {
            throw Refusal(status: 422, reason: "data could not be taken apart")
        }
        self.key = key
        self.stream = stream
        self.device = device
        records = try zip(data, extents).enumerated().map { index, pair in
            try Self.record(pair.0, pair.1, index: index)
        }
    }

    /// Letters, digits, `.`, `_`, `-`: names become directories, so nothing that could leave one.
    static func isName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 64 && !text.hasPrefix(".")
            && text.utf8.allSatisfy {
                (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
                    || [45, 46, 95].contains($0)
            }
    }

    private static func record(
        _ value: Any,
        _ raw: ArraySlice<UInt8>,
        index: Int
    ) throws -> IncomingRecord {
        func refuse(_ why: String) -> Refusal {
            Refusal(status: 422, reason: "record \(index): \(why)")
        }
        guard let fields = value as? [String: Any] else { throw refuse("not an object") }
        guard let id = fields["id"] as? String, isName(id) else {
            throw refuse("id is missing or not a plain name")
        }
        guard let text = (fields["timestamp"] ?? fields["timestamp_start"]) as? String,
            let time = RecordTime(text)
        else { throw refuse("timestamp is missing or not RFC 3339") }
        var record = IncomingRecord(id: id, time: time, bytes: Array(raw), audio: nil)
        // Without a sound format it is a record of another stream, and kept unchanged.
        guard let text = fields["audio_data"] as? String,
            let format = fields["audio_format"] as? String,
            ["ogg", "flac", "aac", "wav"].contains(format)
        else { return record }
        guard let audio = Data(base64Encoded: text) else {
            throw refuse("audio_data is not base64")
        }
        record.audio = (audio, format)
        return record
    }
}
