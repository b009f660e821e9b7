// Members by which a receiver takes a record for a sound.
import Host
import JSON

/// What a record says of a sound in it: the receiver stores that in a file, if it can read it.
struct SoundMembers {
    private var data: [UInt8]?
    private var format = ""
    private var hasFile = false

    /// `value`: as it is written; what is no text counts as absent.
    mutating func take(_ name: [UInt8], _ value: ArraySlice<UInt8>) {
        switch String(decoding: name, as: UTF8.self) {
        case "audio_data": data = Self.text(value)
        case "audio_format": format = String(decoding: Self.text(value) ?? [], as: UTF8.self)
        default:
            let folded = name.map(\.asciiLowercased)
            hasFile = hasFile || folded.elementsEqual("audio_file".utf8)
        }
    }

    /// Why the receiver would refuse the record; nil where it would not.
    var problem: String? {
        guard let data, ["ogg", "flac", "aac", "wav"].contains(format) else { return nil }
        if hasFile { return "audio_file beside audio_data, in the place of which it is stored" }
        return Self.isBase64(data) ? nil : "audio_data is not base64"
    }

    private static func text(_ value: ArraySlice<UInt8>) -> [UInt8]? {
        guard value.first == UInt8(ascii: "\"") else { return nil }
        var cursor = JSONCursor(Array(value))
        return try? cursor.text("a text")
    }

    /// RFC 4648, section 4, with its padding.
    private static func isBase64(_ text: [UInt8]) -> Bool {
        let digits = text.prefix { $0.isDigit || $0.isLetter || $0 == 0x2B || $0 == 0x2F }
        let padding = text[digits.count...]
        return text.count % 4 == 0 && padding.count <= 2 && padding.allSatisfy { $0 == 0x3D }
            && (padding.isEmpty || digits.count % 4 >= 2)
    }
}
