// Writes FLAC frames to a FLAC file (RFC 9639).
import Host

/// Writes one FLAC stream from frames numbered in another; the same frames give the same bytes.
package struct FlacFile {
    /// The number of the next frame.
    private var number: UInt32 = 0

    package init() {}

    /// Returns the marker and the only metadata block, STREAMINFO (sections 6 and 8.2).
    ///
    /// `first` is any frame and gives the block size; `frames` counts the samples in the file. The
    /// MD5 of the samples is zero (unknown): each frame has its own checksum.
    package static func header(rate: Int, frames: Int, first: ArraySlice<UInt8>) -> [UInt8] {
        // The minimum block size is 16; only the last block may be smaller.
        let block = UInt16(clamping: max(16, FlacFrame(first)?.blockFrames ?? 0))
        // 20 bits of rate, 3 of channels - 1, 5 of bits - 1, 36 of samples.
        let rateAndMore = UInt64(max(0, rate) & 0xF_FFFF) << 44 | 15 << 36
        let numbers = rateAndMore | UInt64(max(0, frames)) & 0xF_FFFF_FFFF
        var bytes = Array("fLaC".utf8)
        bytes += [0x80, 0, 0, 34]
        bytes += bigEndian(block)
        bytes += bigEndian(block)
        bytes += [UInt8](repeating: 0, count: 6)
        bytes += bigEndian(numbers)
        bytes += [UInt8](repeating: 0, count: 16)
        invariant(bytes.count == 4 + 4 + 34, "STREAMINFO has the length that its block says")
        return bytes
    }

    /// Returns the frame renumbered for this file; empty if it is not a FLAC frame.
    package mutating func append(_ frame: ArraySlice<UInt8>) -> [UInt8] {
        guard let parsed = FlacFrame(frame) else { return [] }
        defer { number += 1 }
        return parsed.bytes(numbered: number)
    }
}

/// A frame of a FLAC stream with fixed block size, split by its header (RFC 9639, section 9.1).
struct FlacFrame {
    /// Samples in the frame.
    let blockFrames: Int
    /// Synchronisation code, sizes and channels, before the number.
    private let fixed: ArraySlice<UInt8>
    /// Block size and rate, if they follow the number.
    private let extra: ArraySlice<UInt8>
    /// The bytes between the header's checksum and the frame's.
    private let body: ArraySlice<UInt8>

    /// Returns nil without a whole header followed by a checksum.
    init?(_ frame: ArraySlice<UInt8>) {
        let start = frame.startIndex
        guard frame.count >= 8, frame[start] == 0xFF, frame[start + 1] == 0xF8 else { return nil }
        let numberEnd = start + 4 + max(1, (~frame[start + 4]).leadingZeroBitCount)
        let sizeBytes = frame[start + 2] >> 4 == 6 ? 1 : frame[start + 2] >> 4 == 7 ? 2 : 0
        let rateBytes = [12: 1, 13: 2, 14: 2][frame[start + 2] & 0xF] ?? 0
        let headerEnd = numberEnd + sizeBytes + rateBytes
        guard headerEnd + 3 <= frame.endIndex else { return nil }
        fixed = frame[start..<(start + 4)]
        extra = frame[numberEnd..<headerEnd]
        body = frame[(headerEnd + 1)..<(frame.endIndex - 2)]
        blockFrames = Self.size(frame[start + 2] >> 4, extra.prefix(sizeBytes))
    }

    /// Decodes the block size (section 9.1.1); `extra` is the header's end for codes 6 and 7.
    private static func size(_ code: UInt8, _ extra: ArraySlice<UInt8>) -> Int {
        switch code {
        case 1: 192
        case 2...5: 144 << Int(code)
        case 6, 7: extra.reduce(0) { $0 << 8 | Int($1) } + 1
        case 8...15: 1 << Int(code)
        default: 0
        }
    }

    func bytes(numbered number: UInt32) -> [UInt8] {
        var bytes = Array(fixed)
        bytes += Self.coded(number)
        bytes += extra
        bytes.append(CheckSum.crc8(bytes))
        bytes += body
        return bytes + bigEndian(CheckSum.crc16(bytes))
    }

    /// Encodes a number as UTF-8 encodes a character, up to 31 bits (section 9.1.5).
    private static func coded(_ number: UInt32) -> [UInt8] {
        guard number >= 0x80 else { return [UInt8(number)] }
        var bytes: [UInt8] = []
        var rest = number
        // A lead byte holds 5 bits if one byte follows, and one bit less for each more.
        while rest >> UInt32(6 - bytes.count) > 0 || bytes.isEmpty {
            bytes.insert(0x80 | UInt8(rest & 0x3F), at: 0)
            rest >>= 6
        }
        let mark = ~(UInt8.max >> UInt8(bytes.count + 1))
        return [mark | UInt8(rest)] + bytes
    }
}

/// The checksums of FLAC (RFC 9639, sections 9.1.8 and 9.3), highest bit first, from zero.
enum CheckSum {
    /// x^8 + x^2 + x + 1.
    static func crc8(_ bytes: [UInt8]) -> UInt8 {
        bytes.reduce(0) { sum, byte in
            (0..<8).reduce(sum ^ byte) { rest, _ in rest & 0x80 == 0 ? rest << 1 : rest << 1 ^ 0x07
            }
        }
    }

    /// x^16 + x^15 + x^2 + 1.
    static func crc16(_ bytes: [UInt8]) -> UInt16 {
        var sum: UInt16 = 0
        for byte in bytes { sum = sum << 8 ^ table[Int(UInt8(sum >> 8) ^ byte)] }
        return sum
    }

    private static let table: [UInt16] = (0..<256).map { byte in
        (0..<8).reduce(UInt16(byte) << 8) { rest, _ in
            rest & 0x8000 == 0 ? rest << 1 : rest << 1 ^ 0x8005
        }
    }
}
