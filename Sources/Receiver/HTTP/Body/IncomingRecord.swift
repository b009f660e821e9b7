// One record of a body: what the archive needs to know of it, and where it lies.

/// A record that is fit to be stored.
struct IncomingRecord {
    struct Audio {
        /// The string `audio_data`.
        var data: Range<Int>
        var format: String
    }

    var id: String
    var time: RecordTime
    var extent: Range<Int>
    /// Nil where it is no sound.
    var audio: Audio?
    /// The kind and source of an event that says how a source is, as `RecordLine` takes it.
    var state: String?

    /// Why a record is not fit.
    struct Fault: Error {
        var reason: String
    }

    /// Passes the record that comes next; throws `Fault`, or `BodyFault` where it is no JSON.
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
        // Without a sound format it is a record of another stream, and kept unchanged.
        guard let data = fields.audio, let format = fields.format,
            ["ogg", "flac", "aac", "wav"].contains(format)
        else { return }
        guard !fields.hasAudioFile else {
            throw Fault(reason: "audio_file beside audio_data, in the place of which it is stored")
        }
        audio = Audio(data: data, format: format)
    }
}

/// The members that are looked at.
///
/// What is there and no string is "".
private struct Fields {
    var id: String?
    var timestamp: String?
    var start: String?
    var audio: Range<Int>?
    var format: String?
    var hasAudioFile = false
    var kind = ""
    var source = ""
    /// `detail` is an object.
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

/// Letters, digits, `.`, `_`, `-`: names become directories, so nothing that could leave one.
package func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 64 && !text.hasPrefix(".")
        && text.utf8.allSatisfy { isPlain($0) || $0 == 46 }
}

/// An ASCII letter or digit, `_` or `-`.
func isPlain(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
        || [45, 95].contains(byte)
}
