// One record of a body: the facts that the archive needs, and its range in the body.
import Host

/// A record that is fit to be stored.
struct IncomingRecord {
    struct Audio {
        /// The range of the string `audio_data`.
        var data: Range<Int>
        var format: String
    }

    var id: String
    var time: RecordTime
    var extent: Range<Int>
    /// Nil if it has no audio.
    var audio: Audio?
    /// The kind and source of an event about a source's state, as `RecordLine` uses it.
    var state: String?

    /// The reason why a record is not fit.
    struct Fault: Error {
        var reason: String
    }

    /// Reads the next record; throws `Fault`, or `BodyFault` if it is not valid JSON.
    init(_ text: inout BodyJSON) throws {
        guard text.next() == UInt8(ascii: "{") else {
            try text.value()
            throw Fault(reason: "not an object")
        }
        let start = text.position
        var fields = Fields()
        try text.object { try fields.take(&$0, $1) }
        guard let id = fields.id, isName(id) else {
            throw Fault(reason: "id is missing or not a plain name")
        }
        guard let written = fields.timestamp ?? fields.start, let time = RecordTime(written) else {
            throw Fault(reason: "timestamp is missing or not RFC 3339")
        }
        self.id = id
        self.time = time
        extent = start..<text.position
        if RecordLine.stateKinds.contains(fields.kind), !fields.source.isEmpty, fields.hasDetail {
            state = "\(fields.kind) \(RecordLine.shortened(fields.source))"
        }
        // Without a known audio format it belongs to another stream, and is stored unchanged.
        guard let data = fields.audio, let format = fields.format,
            ["ogg", "flac", "aac", "wav"].contains(format)
        else { return }
        guard !fields.hasAudioFile else {
            throw Fault(reason: "audio_file beside audio_data; the server sets audio_file")
        }
        audio = Audio(data: data, format: format)
    }
}

/// The members of a record that the server reads.
///
/// A value that exists but is not a string is "".
private struct Fields {
    var id: String?
    var timestamp: String?
    var start: String?
    var audio: Range<Int>?
    var format: String?
    var hasAudioFile = false
    var kind = ""
    var source = ""
    /// True if `detail` is an object.
    var hasDetail = false

    mutating func take(_ text: inout BodyJSON, _ name: Range<Int>) throws {
        let first = text.next()
        let isString = first == UInt8(ascii: "\"")
        let value = try text.value()
        func string() -> String { isString ? JSONString.read(text.bytes, value) ?? "" : "" }
        let read = JSONString.read(text.bytes, name)
        switch read {
        case "": throw IncomingRecord.Fault(reason: "a member without a name")
        case "id": id = string()
        case "timestamp": timestamp = string()
        case "timestamp_start": start = string()
        case "audio_data": audio = isString ? value : nil
        case "audio_format": format = string()
        case let name? where name.lowercased() == "audio_file": hasAudioFile = true
        case "kind": kind = string()
        case "source": source = string()
        case "detail": hasDetail = first == UInt8(ascii: "{")
        default: break
        }
    }
}

/// Returns whether a name is safe as a directory name: letters, digits, `.`, `_`, `-`.
package func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 64 && !text.hasPrefix(".")
        && text.utf8.allSatisfy { isPlain($0) || $0 == 46 }
}

/// Returns whether a byte is an ASCII letter, a digit, `_` or `-`.
func isPlain(_ byte: UInt8) -> Bool {
    byte.isLetter || byte.isDigit || byte == 45 || byte == 95
}
