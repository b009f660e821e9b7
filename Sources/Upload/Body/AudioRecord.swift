// The JSON of an audio record, piece by piece.
import HTTP
import Queue
import Records

/// One pass over the JSON of a chunk with its file in base64; each pass gives the same pieces.
///
/// At the longest chunk that the configuration allows this is 300 MB, more than a small board's
/// memory.
final class AudioRecord {
    /// The JSON before the audio.
    let head: [UInt8]
    private let tail: [UInt8]
    private let file: PieceSupply
    private var base64 = Base64Encoder()
    private var step = Step.head

    private enum Step {
        case head
        case sound
        case tail
        case end
    }

    /// Creates a pass; `json` is the chunk's JSON without audio, which belongs after its first
    /// `head` bytes.
    init(_ json: [UInt8], head: Int, file: @escaping PieceSupply) {
        self.head = Array(json[..<head])
        tail = Array(json[head...])
        self.file = file
    }

    /// Returns the next piece (never empty), or nil at the end.
    func next() throws -> [UInt8]? {
        switch step {
        case .head:
            step = .sound
            return head
        case .sound:
            while let bytes = try file() {
                var text: [UInt8] = []
                base64.encode(bytes, into: &text)
                if !text.isEmpty { return text }
            }
            step = .tail
            return try next()
        case .tail:
            step = .end
            var text: [UInt8] = []
            base64.finish(into: &text)
            return text + tail
        case .end: return nil
        }
    }

    /// Reads to the end and returns the number of remaining bytes.
    func rest() throws -> Int {
        var length = 0
        while let piece = try next() { length += piece.count }
        return length
    }
}
