// The packets of a segment: written, split, damaged.
import Testing

import AudioFiles

@Suite struct SegmentPacketsTests {
    private let packets: [[UInt8]] = [
        [1, 2, 3], [], [UInt8](repeating: 7, count: 300), [UInt8](repeating: 9, count: 65_535),
    ]

    @Test func split_returnsWhatWasAppended() {
        var data: [UInt8] = []
        for packet in packets { SegmentPackets.append(packet, to: &data) }
        #expect(SegmentPackets.split(data).map(Array.init) == packets)
    }

    @Test func append_writesALittleEndianLength() {
        var data: [UInt8] = []
        SegmentPackets.append([UInt8](repeating: 5, count: 258), to: &data)
        #expect(data.prefix(3) == [2, 1, 5])
        #expect(data.count == 260)
    }

    @Test func split_leavesOutWhatIsCutShort_atEveryLength() {
        var data: [UInt8] = []
        for packet in packets.prefix(3) { SegmentPackets.append(packet, to: &data) }
        for length in 0..<data.count {
            let whole = SegmentPackets.split(Array(data.prefix(length))).map(Array.init)
            #expect(whole == Array(packets.prefix(whole.count)))
            #expect(whole.count == (length < 5 ? 0 : length < 7 ? 1 : 2))
        }
    }
}
