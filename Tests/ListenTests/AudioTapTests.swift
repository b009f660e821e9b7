// The buffer between the recording and the programs that listen.
import Host
import Records
import Support
import Testing

/// Blocks of a recording whose sample number n is n modulo 65536, in chunks of 4000 samples.
func testBlock(frame: Int64, frames: Int, run: Int64 = 1, rate: Int = 1000) -> AudioBlock {
    let chunk = frame / 4000 * 4000
    return AudioBlock(
        run: run,
        frame: frame,
        rate: rate,
        chunkFrame: chunk,
        chunkStart: testStart.advanced(by: .milliseconds(chunk * 1000 / Int64(rate))),
        samples: (0..<frames).map { Int16(truncatingIfNeeded: frame + Int64($0)) }
    )
}

@Suite struct AudioTapTests {
    @Test func closed_holdsNothing() throws {
        let tap = try AudioTap()
        tap.pass(testBlock(frame: 0, frames: 1000))
        tap.set(open: true)
        var next = tap.end
        #expect(tap.read(&next, atMost: 1000) == nil)
        tap.pass(testBlock(frame: 1000, frames: 1000))
        #expect(tap.read(&next, atMost: 1000)?.frame == 1000)
        next -= 1000
        tap.set(open: false)
        #expect(tap.skipLost(&next) == 1000)
    }

    @Test func read_givesAllSamplesOnce_inPieces() throws {
        let tap = try AudioTap()
        tap.set(open: true)
        var next = tap.end
        for frame in [0, 1000, 2000] { tap.pass(testBlock(frame: Int64(frame), frames: 1000)) }
        var samples: [Int16] = []
        while let block = tap.read(&next, atMost: 300) {
            #expect(block.frame == Int64(samples.count))
            #expect(block.offset == .milliseconds(block.frame % 4000))
            samples += block.samples
        }
        #expect(samples == (0..<3000).map { Int16($0) })
        #expect(tap.skipLost(&next) == 0)
    }

    /// A thread that waited for its readers would never pass the last block.
    @Test func pass_neverWaits_andDropsTheOldest() throws {
        let tap = try AudioTap()
        tap.set(open: true)
        var next = tap.end
        let passed = Locked(0)
        let source = try OwnThread("source") {
            for number in 0..<100 {
                tap.pass(testBlock(frame: Int64(number) * 1000, frames: 1000))
                passed.update { $0 += 1 }
            }
        }
        try waitUntil("100 blocks", limit: .seconds(10)) { passed.value == 100 }
        source.join()
        let kept = AudioTap.limit * 1000
        #expect(tap.skipLost(&next) == 100_000 - kept)
        #expect(tap.read(&next, atMost: 1)?.frame == Int64(100_000 - kept))
    }

    @Test func bytes_areBounded_atAnyRate() throws {
        let tap = try AudioTap()
        tap.set(open: true)
        var next = tap.end
        let frames = AudioTap.byteLimit / 4
        for number in 0..<5 {
            tap.pass(testBlock(frame: Int64(number * frames), frames: frames, rate: 384_000))
        }
        #expect(tap.skipLost(&next) == 3 * frames)
    }
}
