// Checks a record's audio members as the server does.
import Host
import JSON

/// The audio members of a record, which the server stores as an audio file if it can.
struct AudioMembers {
    private var data: [UInt8]?
    private var format = ""
    private var hasFile = false

    /// Reads one member; `value` is raw JSON, and counts as absent if it is not a string.
    mutating func receive(_ name: [UInt8], _ value: ArraySlice<UInt8>) {
        switch String(decoding: name, as: UTF8.self) {
        case "audio_data": data = Self.text(value)
        case "audio_format": format = String(decoding: Self.text(value) ?? [], as: UTF8.self)
        default:
            let folded = name.map(\.asciiLowercased)
            hasFile = hasFile || folded.elementsEqual("audio_file".utf8)
        }
    }

    /// Why the server would refuse the record; nil if it would not.
    var problem: String? {
        guard let data, ["ogg", "flac", "aac", "wav"].contains(format) else { return nil }
        if hasFile { return "audio_file beside audio_data; the server sets audio_file" }
        return Self.isBase64(data) ? nil : "audio_data is not base64"
    }

    private static func text(_ value: ArraySlice<UInt8>) -> [UInt8]? {
        guard value.first == UInt8(ascii: "\"") else { return nil }
        var cursor = JSONCursor(Array(value))
        return try? cursor.text("a text")
    }

    /// Checks base64 as in RFC 4648, section 4, with its padding.
    private static func isBase64(_ text: [UInt8]) -> Bool {
        let digits = text.prefix { $0.isDigit || $0.isLetter || $0 == 0x2B || $0 == 0x2F }
        let padding = text[digits.count...]
        return text.count % 4 == 0 && padding.count <= 2 && padding.allSatisfy { $0 == 0x3D }
            && (padding.isEmpty || digits.count % 4 >= 2)
    }
}
