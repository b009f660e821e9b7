// Ogg Opus files: headers, granules, exact length, the same bytes each time.
import COgg
import Testing

import AudioFiles

@Suite struct OggOpusFileTests {
    private func write(packets: Int, frames: Int, preskip: Int = 104, preroll: Int = 0) -> [UInt8] {
        var file = OggOpusFile(
            serial: 7,
            rate: 16_000,
            frames: frames,
            preskip: preskip,
            prerollPackets: preroll
        )
        var bytes = file.headers()
        for index in 0..<packets {
            let packet = [UInt8](repeating: UInt8(index % 251), count: 60)
            bytes += file.append(packet[...])
        }
        return bytes + file.finish()
    }

    @Test func sameInput_givesTheSameBytes() {
        #expect(
            write(packets: 1501, frames: 480_000) == write(packets: 1501, frames: 480_000)
        )
    }

    @Test func packets_roundTrip_withHeadersAsSpecified() throws {
        let packets = try read(write(packets: 1501, frames: 480_000))
        #expect(packets.count == 1503)
        let head: [UInt8] =
            Array("OpusHead".utf8) + [1, 1, 0x38, 0x01, 0x80, 0x3E, 0, 0, 0, 0, 0]
        #expect(packets.first?.bytes == head)
        var tags = Array("OpusTags".utf8)
        tags += [7, 0, 0, 0]
        tags += Array("waypost".utf8)
        tags += [0, 0, 0, 0]
        #expect(packets.dropFirst().first?.bytes == tags)
        #expect(packets.dropFirst(2).first?.bytes == [UInt8](repeating: 0, count: 60))
        #expect(packets.last?.bytes == [UInt8](repeating: UInt8(1500 % 251), count: 60))
    }

    @Test func lastGranule_isPreskipAndFrames_at48kHz() throws {
        let last = try #require(try read(write(packets: 1501, frames: 480_000)).last)
        #expect(last.granule == 312 + 1_440_000)
        #expect(last.isEnd)
    }

    @Test func preroll_growsThePreskip() throws {
        let packets = try read(write(packets: 1505, frames: 480_000, preroll: 4))
        #expect(packets.first?.bytes[10...11] == [0x38, 0x10])
        let granule: Int64 = 312 + 4 * 960 + 1_440_000
        #expect(packets.last?.granule == granule)
    }

    @Test func append_addsNothing_onceTheFramesAreCovered() throws {
        #expect(try read(write(packets: 20, frames: 320)).count == 4)
    }

    private struct Packet {
        var bytes: [UInt8]
        var granule: Int64
        var isEnd: Bool
    }

    /// Reads the file back with libogg; checksums and page order are checked by it.
    private func read(_ file: [UInt8]) throws -> [Packet] {
        var sync = ogg_sync_state()
        var stream = ogg_stream_state()
        ogg_sync_init(&sync)
        ogg_stream_init(&stream, 7)
        defer {
            ogg_sync_clear(&sync)
            ogg_stream_clear(&stream)
        }
        let buffer = try #require(ogg_sync_buffer(&sync, file.count))
        for (index, byte) in file.enumerated() { buffer[index] = CChar(bitPattern: byte) }
        ogg_sync_wrote(&sync, file.count)
        var packets: [Packet] = []
        var page = ogg_page()
        var total = 0
        while ogg_sync_pageout(&sync, &page) == 1 {
            total += page.header_len + page.body_len
            try #require(ogg_stream_pagein(&stream, &page) == 0)
            var packet = ogg_packet()
            while ogg_stream_packetout(&stream, &packet) == 1 {
                let bytes = UnsafeBufferPointer(start: packet.packet, count: packet.bytes)
                packets.append(
                    Packet(
                        bytes: Array(bytes),
                        granule: packet.granulepos,
                        isEnd: packet.e_o_s != 0
                    )
                )
            }
        }
        #expect(total == file.count)
        return packets
    }
}
