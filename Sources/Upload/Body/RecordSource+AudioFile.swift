// The playable file of an audio chunk, made from its segments as it is read.
import AudioFiles
import HTTP
package import Queue
package import Records

extension RecordSource {
    /// Starts a pass over the playable file of a chunk; each pass gives the same bytes.
    func soundFile(of stored: Stored<Chunk>) throws -> PieceSupply {
        let chunk = stored.record
        switch chunk.codec {
        case .opus: return try opusFile(of: stored)
        case .wav:
            let header = WaveFile.header(rate: chunk.rate, frames: chunk.frames)
            return plainFile(of: stored, header: header) { $0 }
        case .flac:
            let first = SegmentPackets.split(try reader.segment(0, of: stored)).first ?? []
            let header = FlacFile.header(rate: chunk.rate, frames: chunk.frames, first: first)
            var file = FlacFile()
            return plainFile(of: stored, header: header) { segment in
                SegmentPackets.split(segment).flatMap { file.append($0) }
            }
        case .aac: return plainFile(of: stored, header: []) { $0 }
        }
    }

    /// Opus packets as an Ogg file: its headers, each segment, and its end.
    private func opusFile(of stored: Stored<Chunk>) throws -> PieceSupply {
        let (chunk, reader) = (stored.record, reader)
        let preroll = try reader.preroll(before: chunk)
        var file = OggOpusFile(
            serial: UInt32(truncatingIfNeeded: stored.sequence),
            rate: chunk.rate,
            frames: chunk.frames,
            preskip: chunk.preskip,
            prerollPackets: preroll.count
        )
        return Self.pieces(-1...chunk.segments) { step in
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

    /// Segments that follow one another after a header, which may be empty.
    ///
    /// `written` converts a segment as stored into its bytes in the file.
    private func plainFile(
        of stored: Stored<Chunk>,
        header: [UInt8],
        written: @escaping ([UInt8]) -> [UInt8]
    ) -> PieceSupply {
        let reader = reader
        return Self.pieces(-1...stored.record.segments - 1) { step in
            step < 0 ? header : written(try reader.segment(step, of: stored))
        }
    }

    /// Calls `piece` for one step after another, and leaves out empty pieces.
    private static func pieces(
        _ steps: ClosedRange<Int>,
        _ piece: @escaping (Int) throws -> [UInt8]
    ) -> PieceSupply {
        var step = steps.lowerBound
        return {
            while step <= steps.upperBound {
                let bytes = try piece(step)
                step += 1
                if !bytes.isEmpty { return bytes }
            }
            return nil
        }
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
    /// Throws RecordMissingError if it does not exist: a chunk with a gap is never sent.
    fileprivate func segment(_ place: Int, of stored: Stored<Chunk>) throws -> [UInt8] {
        let id = stored.record.firstSegment + Int64(place)
        guard let segment = try segment(id) else {
            throw RecordMissingError(
                stream: .audio,
                sequence: stored.sequence,
                why: "its segment \(id) is not there"
            )
        }
        return segment.data
    }
}
