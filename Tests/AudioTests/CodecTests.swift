// Each codec from samples to the files that are uploaded, as ffmpeg and the codec's own tool see them.
import AudioFiles
import Foundation
import Queue
import Records
import Testing

@testable import Audio

@Suite struct CodecTests {
    /// A tone that never repeats, with noise: nothing in it is easy to guess.
    private func sound(seconds: Double, rate: Int = 16_000) -> [Int16] {
        var noise: UInt64 = 1
        return tone(frames: Int(seconds * Double(rate))).map { sample in
            noise = noise &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return sample + Int16(truncatingIfNeeded: Int64(bitPattern: noise) >> 55)
        }
    }

    @Test(arguments: [AudioCodec.wav, .flac])
    func lossless_everyChunkIs30Seconds_bitByBit(codec: AudioCodec) throws {
        let sound = sound(seconds: 70)
        let files = try AudioRig(codec).chunks(of: sound)
        #expect(files.map(\.first) == [0, 448_000, 896_000])
        #expect(files.map(\.chunk.frames) == [480_000, 480_000, 224_000])
        for file in files {
            let decoded = try Player.ffmpeg(file)
            #expect(decoded == Array(sound[file.first..<(file.first + file.chunk.frames)]))
        }
    }

    @Test func opusChunks_are30Seconds_andNeighboursAgree() throws {
        let sound = sound(seconds: 70)
        let files = try AudioRig(.opus).chunks(of: sound)
        #expect(files.map(\.chunk.frames) == [480_000, 480_000, 224_000])
        for file in files {
            // Opus files are played at 48 kHz.
            #expect(try Player.ffmpeg(file).count == file.chunk.frames * 3)
        }
        let decoded = try files.map { try Player.ffmpeg($0, rate: 16_000) }
        for (file, decoded) in zip(files, decoded) {
            let source = Array(sound[file.first..<(file.first + file.chunk.frames)])
            #expect(Likeness.offset(source, decoded, from: 16_000, within: 40) == 0)
        }
        for (before, after) in zip(decoded, decoded.dropFirst()) {
            // A resampler has no sound beyond a file's ends, hence not to the last sample.
            let overlap = Likeness.decibels(
                before.suffix(32_000).dropLast(320),
                after.prefix(31_680)
            )
            #expect(overlap > 30, "the overlaps differ: \(overlap) dB")
        }
    }

    @Test func aacChunks_areWholeFrames_andNeighboursAgree() throws {
        let sound = sound(seconds: 100)
        let files = try AudioRig(.aac).chunks(of: sound)
        // 30 s are 468.75 frames of 1024: each end is the frame next to where it would be.
        #expect(files.map(\.first) == [0, 438 * 1024, 875 * 1024, 1313 * 1024])
        #expect(files.dropLast().map { $0.chunk.frames / 1024 } == [469, 468, 469])
        let decoded = try files.map { try Player.ffmpeg($0) }
        for (file, decoded) in zip(files, decoded) {
            #expect(decoded.count == (file.chunk.frames + 1023) / 1024 * 1024)
            let source = Array(sound[file.first..<(file.first + file.chunk.frames)])
            #expect(Likeness.offset(source, decoded, from: 16_000, within: 40) == 0)
            let likeness = Likeness.decibels(source[1024...], decoded[1024...])
            #expect(likeness > 15, "\(likeness) dB")
        }
        for (file, (before, after)) in zip(files.dropFirst(), zip(decoded, decoded.dropFirst())) {
            // The first frame of a file has no frame before it to be added to: it fades in.
            let shared = file.chunk.overlapFrames
            #expect(Array(before.suffix(shared).dropFirst(1024)) == Array(after[1024..<shared]))
        }
    }

    @Test(
        arguments: AudioCodec.allCases,
        [1, 15, 319, 1023, 1024, 1025, 3999, 4001, 16_000, 17_000]
    )
    func shortRun_keepsItsLength(codec: AudioCodec, frames: Int) throws {
        let sound = Array(sound(seconds: 2).prefix(frames))
        let files = try AudioRig(codec).chunks(of: sound)
        #expect(files.map(\.chunk.frames) == [frames])
        let decoded = try Player.ffmpeg(try #require(files.first))
        switch codec {
        case .wav, .flac: #expect(decoded == sound)
        case .opus: #expect(decoded.count == frames * 3)
        // ffmpeg does not know fewer than four frames as AAC.
        case .aac: #expect(decoded.count == max(4, (frames + 1023) / 1024) * 1024)
        }
    }

    @Test(arguments: AudioCodec.allCases)
    func cutOffRun_givesItsSegments_andTheNextBeginsAnew(codec: AudioCodec) throws {
        let rig = try AudioRig(codec)
        let sound = sound(seconds: 40)
        var queue = try rig.queue()
        try rig.record(sound, into: queue, isCut: true)
        queue.close()
        queue = try rig.queue()
        try rig.record(Array(sound.prefix(80_000)), into: queue)
        let files = try rig.files(queue)
        queue.close()
        #expect(files.map { $0.chunk.overlapFrames > 0 } == [false, true, false])
        // All but what the encoder and the segment under way still held.
        let lost = sound.count - files[1].first - files[1].chunk.frames
        #expect((0..<18_000).contains(lost))
        for file in files {
            let length = try Player.ffmpeg(file).count
            #expect(length >= file.chunk.frames * (codec == .opus ? 3 : 1))
            #expect(length < file.chunk.frames * (codec == .opus ? 3 : 1) + 1024)
        }
        #expect(files[2].chunk.frames == 80_000)
    }

    @Test(arguments: [8000, 11_050, 22_050, 44_100, 48_000, 96_000, 192_000, 384_000])
    func flac_takesEveryRate(rate: Int) throws {
        let sound = sound(seconds: 5.5, rate: rate)
        let files = try AudioRig(.flac, rate: rate, chunk: .seconds(4)).chunks(of: sound)
        #expect(files.map(\.chunk.frames) == [4 * rate, sound.count - 2 * rate])
        for file in files {
            #expect(
                try Player.ffmpeg(file) == Array(sound[file.first...].prefix(file.chunk.frames))
            )
            // The header has no checksum over all samples, as flac reports.
            try Player.run("flac", ["-t", "-s", "FILE"], file, expecting: "cannot check MD5")
        }
    }

    @Test(arguments: [8000, 12_000, 22_050, 24_000, 32_000, 44_100, 48_000])
    func aac_takesItsRates(rate: Int) throws {
        let sound = sound(seconds: 7, rate: rate)
        let files = try AudioRig(.aac, rate: rate, chunk: .seconds(4)).chunks(of: sound)
        #expect(files.count == 3)
        for file in files {
            let decoded = try Player.ffmpeg(file)
            #expect(decoded.count == (file.chunk.frames + 1023) / 1024 * 1024)
            #expect(abs(file.chunk.frames - 4 * rate) < 1024 || file.first == files.last?.first)
        }
    }

    @Test(arguments: [8000, 12_000, 24_000, 48_000])
    func opus_takesItsRates(rate: Int) throws {
        let files = try AudioRig(.opus, rate: rate, chunk: .seconds(4))
            .chunks(of: sound(seconds: 7, rate: rate))
        #expect(files.map(\.chunk.frames) == [4 * rate, 4 * rate, 3 * rate])
        for file in files {
            #expect(try Player.ffmpeg(file).count == file.chunk.frames * 48_000 / rate)
        }
    }

    @Test func flac_framesNumberedAnew_areTheBytesOfTheLibrary() throws {
        // From the first frame on, the number is the run's own: up to codes of four bytes.
        let codec = try FlacCodec(rate: 16_000, segmentFrames: 16)
        #expect(codec.blockFrames == 16)
        var file = FlacFile()
        let sound = sound(seconds: 1)
        for number in 0..<66_000 {
            let from = number % 900 * 16
            for packet in try codec.encode(sound[from..<(from + 16)]) {
                let frame = try #require(SegmentPackets.split(packet).first)
                try #require(file.append(frame) == Array(frame))
            }
        }
    }

    @Test(arguments: AudioCodec.allCases)
    func level_ofAFullScaleSineIsMinus3Decibels(codec: AudioCodec) throws {
        let sine = (0..<480_000).map { Int16((sin(Double($0) * 0.3) * 32_767).rounded()) }
        let chunk = try #require(try AudioRig(codec).chunks(of: sine).first?.chunk)
        // RMS against full scale 1: a square wave is 0 dBFS, a sine 10 log10(1/2).
        #expect(abs(AudioLevel.decibels(chunk.meanSquare) + 3.0103) < 0.001)
    }
}
