// Names and media types of audio files.
import Host
import Records

/// Returns the name of a chunk's file: its start time and its record's id.
func soundName(_ start: WallTime, id: String, codec: AudioCodec) -> String {
    "\(start.rfc3339.filter { $0.isNumber || $0.isLetter })_\(id).\(codec.format)"
}

extension AudioCodec {
    /// The media type of its files.
    var mediaType: String {
        switch self {
        case .opus: "audio/ogg"
        case .wav: "audio/wav"
        case .flac: "audio/flac"
        case .aac: "audio/aac"
        }
    }
}
