// The JSON of a record of sound, piece by piece.
import Queue
import Records

/// One pass over the JSON of a chunk with its file in base64; each pass gives the same pieces.
///
/// The longest chunk that a configuration allows has 300 MB of it, more than a small board has memory.
final class SoundRecord {
    /// The JSON before and after the sound.
    let head: [UInt8]
    private let tail: [UInt8]
    private let file: any SoundFile
    private var base64 = Base64Encoder()
    private var step = Step.head

    private enum Step {
        case head
        case sound
        case tail
        case end
    }

    /// `json` is that of the chunk with no sound in it; `head` bytes of it stand before the sound.
    init(_ json: [UInt8], head: Int, file: any SoundFile) {
        self.head = Array(json[..<head])
        tail = Array(json[head...])
        self.file = file
    }

    /// The next piece (never empty), or nil at the end.
    func next() throws -> [UInt8]? {
        switch step {
        case .head:
            step = .sound
            return head
        case .sound:
            while let bytes = try file.next() {
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

    /// The bytes of all that is left of it.
    func rest() throws -> Int {
        var length = 0
        while let piece = try next() { length += piece.count }
        return length
    }
}
