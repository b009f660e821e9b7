// The stored form of a segment's packets: each with its length in front.
import Host

/// The Opus packets or FLAC frames of one segment: a 16-bit little-endian length before each.
package enum SegmentPackets {
    package static func append(_ packet: some Collection<UInt8>, to data: inout [UInt8]) {
        mustHold(packet.count <= UInt16.max, "a packet's length fits into two bytes")
        let length = UInt16(clamping: packet.count)
        data += littleEndian(length)
        data.append(contentsOf: packet.prefix(Int(length)))
    }

    /// Returns the whole packets in `data`; leaves out a truncated one at the end.
    package static func split(_ data: [UInt8]) -> [ArraySlice<UInt8>] {
        var packets: [ArraySlice<UInt8>] = []
        var at = 0
        while at + 2 <= data.count {
            let end = at + 2 + Int(data[at]) + Int(data[at + 1]) << 8
            guard end <= data.count else { break }
            packets.append(data[(at + 2)..<end])
            at = end
        }
        return packets
    }
}
