// Uploads of long audio chunks, which are never in memory as a whole.
import Foundation
import Host
import HTTP
import Queue
import QueueSupport
import Records
import Support
import Testing

import Upload

@Suite struct LongAudioTests {
    /// Half a minute at the highest rate: 11.5 MB of the 230 MB of ten minutes.
    private static let segments = 30
    private static let segmentBytes = 384_000

    private let temporary = TemporaryFolder()

    /// A queue with so many chunks that do not compress.
    private func queue(chunks: Int) throws -> Queue {
        let queue = try Queue(at: temporary.path + "/queue.sqlite", clock: SystemClock())
        for _ in 0..<chunks {
            let run = AudioRun(
                id: queue.newRunID(),
                codec: .wav,
                rate: 192_000,
                device: "mic",
                chunkSegments: Self.segments,
                overlapSegments: 0
            )
            queue.begin(run)
            for number in 0..<Self.segments {
                queue.accept(
                    Segment(
                        run: run.id,
                        frames: Self.segmentBytes / 2,
                        start: SystemClock().stamp().advanced(by: .seconds(number)),
                        meanSquare: 0.1,
                        data: (0..<Self.segmentBytes).map {
                            UInt8(truncatingIfNeeded: $0 * $0 >> 5)
                        }
                    )
                )
                // Memory holds a bounded amount ahead of the disk.
                if number % 10 == 9 { try queue.flushed() }
            }
            queue.end(run: run.id)
        }
        return try queue.flushed()
    }

    private func pieces(_ body: RequestBody) throws -> [ArraySlice<UInt8>] {
        var pieces: [ArraySlice<UInt8>] = []
        while let piece = Optional(try body.read(atMost: .max)), !piece.isEmpty {
            pieces.append(piece)
        }
        return pieces
    }

    @Test(arguments: [Compression.none, .gzip])
    func chunk_isSentInSegmentPieces_identicalAtEachRetry(compression: Compression) throws {
        let queue = try queue(chunks: 1)
        defer { queue.close() }
        let envelope = Envelope(streamName: "sound", deviceID: "device")
        let range = try #require(queue.pending(.audio))
        let reader = try queue.reader()
        let draft = try BodyDraft(
            range,
            limit: 8 << 20,
            envelope: envelope,
            compression: compression,
            reader: reader
        )
        let last = draft.last
        let batch = try #require(try queue.perform { try $0.freeze(range, through: last) })
        let first = try #require(try draft.body(of: batch, compression))
        let pieces = try pieces(first)
        #expect(pieces.map(\.count).max() ?? 0 < 2 * Self.segmentBytes)
        #expect(pieces.reduce(0) { $0 + $1.count } == first.length)
        let again = try BatchBody(
            batch: batch,
            envelope: envelope,
            compression: compression,
            reader: reader
        ).request()
        #expect(try self.pieces(again).joined().elementsEqual(pieces.joined()))
        guard compression == .none else { return }
        let json = try JSONSerialization.jsonObject(with: Data(pieces.joined())) as? [String: Any]
        let record = (json?["data"] as? [[String: Any]])?.first
        let sound = (record?["audio_data"] as? String).flatMap { Data(base64Encoded: $0) }
        #expect(sound?.count == 44 + Self.segments * Self.segmentBytes)
        #expect(record?["audio_format"] as? String == "wav")
    }

    @Test func chunksThatDoNotFitTogether_goAlone() throws {
        let queue = try queue(chunks: 2)
        defer { queue.close() }
        let range = try #require(queue.pending(.audio))
        for (limit, last) in [(1000, 1), (16 << 20, 1), (31 << 20, 2)] as [(Int, Int64)] {
            let draft = try BodyDraft(
                range,
                limit: limit,
                envelope: Envelope(streamName: "sound", deviceID: "device"),
                compression: .none,
                reader: queue.reader()
            )
            #expect(draft.last == last)
        }
    }
}
