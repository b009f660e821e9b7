// Writes Opus packets to an Ogg file (RFC 7845).
import COgg
import Host

/// Writes one Ogg Opus stream; the same packets give the same bytes each time.
package struct OggOpusFile: ~Copyable {
    /// Opus counts time at 48 kHz for any input rate (RFC 7845, section 4).
    private static let granuleRate = 48_000
    /// One packet is 20 ms.
    private static let packetGranules: Int64 = 960

    private var stream = ogg_stream_state()
    private var packets: Int64 = 0
    private var granule: Int64 = 0
    /// A variable, because Swift 6.0.3 refuses mutating calls in an initialiser after a constant is
    /// set.
    private var lastGranule: Int64

    /// Starts a file that decodes to exactly `frames` at `rate`.
    ///
    /// `preskip`: frames at `rate` of encoder delay. `prerollPackets`: packets before the audio, in
    /// which the decoder converges (RFC 7845, section 4.6).
    package init(serial: UInt32, rate: Int, frames: Int, preskip: Int, prerollPackets: Int) {
        let scale = Self.granuleRate / max(1, rate)
        let skip = preskip * scale + prerollPackets * Int(Self.packetGranules)
        lastGranule = Int64(skip + frames * scale)
        ogg_stream_init(&stream, Int32(bitPattern: serial))
        put(Self.head(rate: rate, preskip: skip)[...], granule: 0, isLast: false)
    }

    deinit {
        var stream = stream
        ogg_stream_clear(&stream)
    }

    /// Returns the pages of the two headers.
    package mutating func headers() -> [UInt8] {
        var bytes = pages(flush: true)
        put(Self.tags[...], granule: 0, isLast: false)
        bytes += pages(flush: true)
        return bytes
    }

    /// Adds a packet and returns the full pages; ignores packets once `frames` are covered.
    package mutating func append(_ packet: ArraySlice<UInt8>) -> [UInt8] {
        guard granule < lastGranule else { return [] }
        granule += Self.packetGranules
        // A last granule position below its packets' end trims the stream (section 4.5).
        put(packet, granule: min(granule, lastGranule), isLast: granule >= lastGranule)
        return pages(flush: false)
    }

    package mutating func finish() -> [UInt8] { pages(flush: true) }

    private mutating func put(_ data: ArraySlice<UInt8>, granule: Int64, isLast: Bool) {
        data.withUnsafeBufferPointer { buffer in
            // libogg copies the packet before it returns, and does not write to it.
            var packet = ogg_packet(
                packet: UnsafeMutablePointer(mutating: buffer.baseAddress),
                bytes: buffer.count,
                b_o_s: packets == 0 ? 1 : 0,
                e_o_s: isLast ? 1 : 0,
                granulepos: granule,
                packetno: packets
            )
            ogg_stream_packetin(&stream, &packet)
        }
        packets += 1
    }

    private mutating func pages(flush: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        var page = ogg_page()
        while (flush ? ogg_stream_flush(&stream, &page) : ogg_stream_pageout(&stream, &page)) != 0 {
            bytes.append(
                contentsOf: UnsafeBufferPointer(start: page.header, count: page.header_len)
            )
            bytes.append(contentsOf: UnsafeBufferPointer(start: page.body, count: page.body_len))
        }
        return bytes
    }

    /// OpusHead (section 5.1): version 1, one channel, no gain, mapping family 0.
    private static func head(rate: Int, preskip: Int) -> [UInt8] {
        let skip = UInt16(clamping: preskip)
        let input = UInt32(clamping: rate)
        return Array("OpusHead".utf8) + [1, 1] + littleEndian(skip) + littleEndian(input) + [
            0, 0, 0,
        ]
    }

    /// OpusTags (section 5.2): the vendor, no comments.
    private static let tags =
        Array("OpusTags".utf8) + littleEndian(UInt32(7)) + Array("waypost".utf8)
        + littleEndian(UInt32(0))
}
