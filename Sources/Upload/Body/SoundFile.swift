// The playable file of an audio chunk, made from its segments as it is read.
import AudioFiles
package import Queue
package import Records

/// One pass over a chunk's file; each pass gives the same bytes.
protocol SoundFile: AnyObject {
    /// Returns the next piece (never empty), or nil at the end.
    func next() throws -> [UInt8]?
}

/// A chunk of Opus packets as an Ogg file.
final class OpusSoundFile: SoundFile {
    private let stored: Stored<Chunk>
    private var chunk: Chunk { stored.record }
    private let reader: Reader
    private let preroll: [ArraySlice<UInt8>]
    /// The next step: -1 for the headers, then each segment, then one past them.
    private var step = -1
    private var file: OggOpusFile

    init(_ stored: Stored<Chunk>, reader: Reader) throws {
        let chunk = stored.record
        let preroll = try reader.preroll(before: chunk)
        self.stored = stored
        self.reader = reader
        self.preroll = preroll
        file = OggOpusFile(
            serial: UInt32(truncatingIfNeeded: stored.sequence),
            rate: chunk.rate,
            frames: chunk.frames,
            preskip: chunk.preskip,
            prerollPackets: preroll.count
        )
    }

    func next() throws -> [UInt8]? {
        while step <= chunk.segments {
            let bytes = try piece(step)
            step += 1
            if !bytes.isEmpty { return bytes }
        }
        return nil
    }

    private func piece(_ step: Int) throws -> [UInt8] {
        if step == chunk.segments { return file.finish() }
        guard step >= 0 else {
            return preroll.reduce(into: file.headers()) { $0 += file.append($1) }
        }
        var packets = SegmentPackets.split(try reader.segment(step, of: stored))
        // The last packet is repeated as the first one of the next segment.
        if step < chunk.segments - 1 { _ = packets.popLast() }
        return packets.reduce(into: []) { $0 += file.append($1) }
    }
}

/// A chunk whose segments follow one another after an optional header: WAV, FLAC, ADTS.
final class PlainSoundFile: SoundFile {
    private let stored: Stored<Chunk>
    private var chunk: Chunk { stored.record }
    private let reader: Reader
    private let header: [UInt8]
    /// Converts a segment as stored into its bytes in the file.
    private let written: ([UInt8]) -> [UInt8]
    /// The next step: -1 for the header, then each segment.
    private var step = -1

    private init(
        _ stored: Stored<Chunk>,
        _ reader: Reader,
        header: [UInt8] = [],
        written: @escaping ([UInt8]) -> [UInt8] = { $0 }
    ) {
        self.stored = stored
        self.reader = reader
        self.header = header
        self.written = written
    }

    convenience init(wave stored: Stored<Chunk>, reader: Reader) {
        let chunk = stored.record
        self.init(stored, reader, header: WaveFile.header(rate: chunk.rate, frames: chunk.frames))
    }

    convenience init(aac stored: Stored<Chunk>, reader: Reader) { self.init(stored, reader) }

    convenience init(flac stored: Stored<Chunk>, reader: Reader) throws {
        let chunk = stored.record
        let first = SegmentPackets.split(try reader.segment(0, of: stored)).first
        let header = FlacFile.header(rate: chunk.rate, frames: chunk.frames, first: first ?? [])
        var file = FlacFile()
        self.init(stored, reader, header: header) { segment in
            SegmentPackets.split(segment).flatMap { file.append($0) }
        }
    }

    func next() throws -> [UInt8]? {
        while step < chunk.segments {
            let bytes =
                step < 0
                ? header
                : written(try reader.segment(step, of: stored))
            step += 1
            if !bytes.isEmpty { return bytes }
        }
        return nil
    }
}

extension Reader {
    /// Returns the four Opus packets (80 ms) before a chunk that let a decoder settle (RFC 7845,
    /// section 4.6).
    ///
    /// Empty if the chunk is the first of its run.
    package func preroll(before chunk: Chunk) throws -> [ArraySlice<UInt8>] {
        guard let own = try segment(chunk.firstSegment),
            let before = try segment(chunk.firstSegment - 1), before.run == own.run
        else { return [] }
        return SegmentPackets.split(before.data).dropLast().suffix(4)
    }

    /// Returns the encoded audio of one segment of a chunk.
    ///
    /// Throws RecordMissing if it does not exist: a chunk with a gap is never sent.
    fileprivate func segment(_ place: Int, of stored: Stored<Chunk>) throws -> [UInt8] {
        let id = stored.record.firstSegment + Int64(place)
        guard let segment = try segment(id) else {
            throw RecordMissing(
                stream: .audio,
                sequence: stored.sequence,
                why: "its segment \(id) is not there"
            )
        }
        return segment.data
    }
}
