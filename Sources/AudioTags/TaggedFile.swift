// Puts the fields of a recording into a WAV, FLAC or Ogg Opus file.
import Host

/// Adds metadata to audio files; the samples and packets stay byte for byte.
package enum TaggedFile {
    /// Returns a whole `file` with the fields in it, in the place of comments that it had.
    ///
    /// `type`: `wav`, `flac` or `ogg`. A file that is not a complete one of that type is returned
    /// unchanged.
    package static func tagged(
        _ file: [UInt8],
        type: String,
        _ fields: [(key: String, value: String)]
    ) -> [UInt8] {
        // Behind a `data` chunk of unknown length, a chunk would be audio.
        guard type != "wav" || isWholeWave(file) else { return file }
        let (first, last) = started(file, type: type, fields)
        let whole = first.count + last.count - 8
        invariant(
            last.isEmpty || number(first, at: 4) == whole,
            "a WAVE file has its header's length"
        )
        return first + last
    }

    /// Returns the beginning of a file with the fields in it, and the bytes that belong after the
    /// file's end.
    ///
    /// `beginning`: all bytes before the audio at least.
    package static func started(
        _ beginning: [UInt8],
        type: String,
        _ fields: [(key: String, value: String)]
    ) -> (first: [UInt8], last: [UInt8]) {
        switch type {
        case "wav": return wave(beginning, fields) ?? (beginning, [])
        case "flac": return (flac(beginning, fields) ?? beginning, [])
        case "ogg": return (OggPage.tagged(beginning, vorbisComments(fields)) ?? beginning, [])
        default: return (beginning, [])
        }
    }

    // MARK: WAV

    private static let riffHead = 12

    /// Makes a chunk `guan` for the end (GUANO 1.0, "Embedding in WAVE Files").
    ///
    /// Its note goes into a LIST chunk, too, as ICMT, which other recorders' programs read.
    private static func wave(
        _ beginning: [UInt8],
        _ fields: [(key: String, value: String)]
    ) -> (first: [UInt8], last: [UInt8])? {
        guard let size = waveSize(beginning) else { return nil }
        let text = fields.map { "\($0.key): \($0.value)\n" }.joined()
        var chunk = waveChunk("guan", Array(text.utf8), padding: UInt8(ascii: " "))
        if let comment = fields.first(where: { $0.key == Recording.comment })?.value {
            let entry = waveChunk("ICMT", Array(comment.utf8) + [0], padding: 0)
            chunk += waveChunk("LIST", Array("INFO".utf8) + entry, padding: 0)
        }
        // The size in the header is limited to 4 GiB.
        guard size % 2 == 0, let whole = UInt32(exactly: size + chunk.count) else { return nil }
        var first = beginning
        first.replaceSubrange(4..<8, with: littleEndian(whole))
        return (first, chunk)
    }

    private static func waveChunk(_ id: String, _ data: [UInt8], padding: UInt8) -> [UInt8] {
        let data = data.count % 2 > 0 ? data + [padding] : data
        return Array(id.utf8) + littleEndian(UInt32(data.count)) + data
    }

    /// Returns the number of bytes after the first eight, as the header says it.
    private static func waveSize(_ file: [UInt8]) -> Int? {
        guard file.count >= riffHead, file.starts(with: "RIFF".utf8),
            file[8..<riffHead].elementsEqual("WAVE".utf8)
        else { return nil }
        return number(file, at: 4)
    }

    /// Returns whether chunks fill the file to its end, none of them GUANO's.
    private static func isWholeWave(_ file: [UInt8]) -> Bool {
        guard let size = waveSize(file), size == file.count - 8 else { return false }
        var place = riffHead
        while place < file.count {
            guard place + 8 <= file.count, !file[place...].starts(with: "guan".utf8) else {
                return false
            }
            let length = number(file, at: place + 4)
            place += 8 + length + length % 2
        }
        return place == file.count
    }

    private static func number(_ file: [UInt8], at place: Int) -> Int {
        (0..<4).reduce(0) { $0 | Int(file[place + $1]) << (8 * $1) }
    }

    // MARK: FLAC

    /// Adds a block VORBIS_COMMENT after STREAMINFO (RFC 9639, sections 8.1 and 8.6).
    private static func flac(
        _ file: [UInt8],
        _ fields: [(key: String, value: String)]
    ) -> [UInt8]? {
        guard file.starts(with: "fLaC".utf8) else { return nil }
        let comments = vorbisComments(fields)
        guard comments.count < 1 << 24 else { return nil }
        var (blocks, at, isLast) = ([[UInt8]](), 4, false)
        while !isLast {
            guard at + 4 <= file.count else { return nil }
            isLast = file[at] & 0x80 != 0
            let length = Int(file[at + 1]) << 16 | Int(file[at + 2]) << 8 | Int(file[at + 3])
            guard at + 4 + length <= file.count else { return nil }
            var block = Array(file[at..<(at + 4 + length)])
            block[0] &= 0x7F
            if block[0] != 4 { blocks.append(block) }
            at += 4 + length
        }
        guard blocks.first?[0] == 0 else { return nil }
        let length = bigEndian(UInt32(comments.count)).suffix(3)
        blocks.insert([4] + length + comments, at: 1)
        blocks[blocks.count - 1][0] |= 0x80
        return Array("fLaC".utf8) + blocks.joined() + file[at...]
    }

    /// Returns a comment header: the vendor, then `key=value` texts (Vorbis I, section 5.2).
    ///
    /// The note is the comment, too.
    private static func vorbisComments(_ fields: [(key: String, value: String)]) -> [UInt8] {
        func text(_ value: String) -> [UInt8] {
            littleEndian(UInt32(clamping: value.utf8.count)) + value.utf8
        }
        let comment = fields.filter { $0.key == Recording.comment }
        let fields = fields + comment.map { ("COMMENT", $0.value) }
        return text("waypost") + littleEndian(UInt32(clamping: fields.count))
            + fields.flatMap { text("\($0.key)=\($0.value)") }
    }
}

/// A page of an Ogg stream (RFC 3533, section 6).
private struct OggPage {
    /// Bytes before the table of segments.
    private static let headLength = 27
    private static let checksumPlace = 22..<26
    /// A packet in one page has at most 254 whole segments and a shorter one.
    private static let longestPacket = 255 * 255 - 1

    private let range: Range<Int>
    /// The only packet of the page; nil if it has others or a part of one.
    private let packet: Range<Int>?

    /// Finds the page that begins at `place`; nil if none does.
    private init?(_ file: [UInt8], at place: Int) {
        let head = place + Self.headLength
        guard head <= file.count, file[place..<(place + 4)].elementsEqual("OggS".utf8) else {
            return nil
        }
        let segments = file[head...].prefix(Int(file[place + 26]))
        let start = head + segments.count
        let end = start + segments.reduce(0) { $0 + Int($1) }
        guard segments.count == Int(file[place + 26]), end <= file.count else { return nil }
        range = place..<end
        let isOne = segments.dropLast().allSatisfy { $0 == 255 } && segments.last ?? 255 < 255
        let isContinued = file[place + 5] & 1 != 0
        packet = isOne && !isContinued ? start..<end : nil
    }

    /// Returns an Ogg Opus file with other comments (RFC 7845, section 5.2), on the page they had.
    static func tagged(_ file: [UInt8], _ comments: [UInt8]) -> [UInt8]? {
        let packet = Array("OpusTags".utf8) + comments
        guard packet.count <= longestPacket, let first = Self(file, at: 0),
            let page = Self(file, at: first.range.upperBound), let old = page.packet,
            file[old].starts(with: "OpusTags".utf8)
        else { return nil }
        let whole = packet.count / 255
        var new = Array(file[page.range.lowerBound..<(page.range.lowerBound + headLength - 1)])
        new.append(UInt8(whole + 1))
        new += [UInt8](repeating: 255, count: whole) + [UInt8(packet.count % 255)]
        new += packet
        new.replaceSubrange(checksumPlace, with: [0, 0, 0, 0])
        new.replaceSubrange(checksumPlace, with: littleEndian(checksum(new)))
        return Array(file[..<page.range.lowerBound]) + new + Array(file[page.range.upperBound...])
    }

    /// CRC-32 with the polynomial 0x04C11DB7, highest bit first, from zero (RFC 3533, section 6).
    private static func checksum(_ page: [UInt8]) -> UInt32 {
        page.reduce(0) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte) << 24) { rest, _ in
                rest & 0x8000_0000 == 0 ? rest << 1 : rest << 1 ^ 0x04C1_1DB7
            }
        }
    }
}
