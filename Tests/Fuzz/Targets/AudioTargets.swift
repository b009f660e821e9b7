// Fuzz targets for writing stored audio into files: the database may be damaged.
import FuzzSupport

@testable import AudioFiles

enum AudioTargets {
    static let all = [
        FuzzTarget(name: "segment-packets", run: packets), FuzzTarget(name: "ogg", run: ogg),
        FuzzTarget(name: "flac", run: flac), FuzzTarget(name: "wave", run: wave),
    ]

    private static func packets(_ input: [UInt8]) {
        let packets = SegmentPackets.split(input)
        var again: [UInt8] = []
        for packet in packets { SegmentPackets.append(packet, to: &again) }
        // Complete packets are returned unchanged; the rest is left out.
        precondition(input.starts(with: again))
    }

    /// Reads the numbers of a database row, then the packets of its segments.
    private static func ogg(_ input: [UInt8]) {
        guard input.count >= 8 else { return }
        func number(_ at: Int) -> Int { Int(input[at]) | Int(input[at + 1]) << 8 }
        let rates = [8000, 16_000, 24_000, 48_000, 0, -1, 1, number(2)]
        var file = OggOpusFile(
            serial: UInt32(number(0)),
            rate: rates[Int(input[0] & 7)],
            frames: number(4) * 16,
            preskip: number(6),
            prerollPackets: Int(input[1] & 7)
        )
        var bytes = file.headers()
        let packets = SegmentPackets.split(Array(input[8...]))
        for packet in packets { bytes += file.append(packet) }
        bytes += file.finish()
        precondition(bytes.starts(with: "OggS".utf8))
        // A page of up to 255 lengths adds 27 bytes.
        precondition(bytes.count <= 400 + input.count + 40 * (packets.count + 1))
    }

    /// Writes the frames of a segment into a file; each must become a frame of the same length or
    /// slightly more.
    private static func flac(_ input: [UInt8]) {
        let frames = SegmentPackets.split(input)
        let header = FlacFile.header(
            rate: input.count * 1000,
            frames: input.count - 4,
            first: frames.first ?? []
        )
        precondition(header.count == 42)
        var file = FlacFile()
        for frame in frames {
            let bytes = file.append(frame)
            precondition(bytes.count <= frame.count + 6)
            precondition(bytes.isEmpty || FlacFrame(bytes[...]) != nil)
        }
    }

    private static func wave(_ input: [UInt8]) {
        var numbers = [0, 0]
        for (index, byte) in input.prefix(16).enumerated() {
            numbers[index / 8] = numbers[index / 8] << 8 | Int(byte)
        }
        let header = WaveFile.header(rate: numbers[0], frames: numbers[1])
        precondition(header.count == 44)
    }
}
