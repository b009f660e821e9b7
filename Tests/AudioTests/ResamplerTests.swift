// The filter before the rate is lowered: what is above vanishes, what is below stays, no frame is lost.
import Foundation
import Testing

@testable import Audio

@Suite struct ResamplerTests {
    private func level(of hertz: Double, from rate: Int) throws -> Double {
        let resampler = try Resampler(from: rate, to: 16_000)
        let sound = (0..<rate).map {
            Float(0.5 * sin(2 * Double.pi * hertz * Double($0) / Double(rate)))
        }
        var samples: [Int16] = []
        resampler.convert(sound, into: &samples)
        let middle = samples.dropFirst(1000).dropLast(1000).map { Double($0) / 32_768 }
        let power = middle.reduce(0) { $0 + $1 * $1 } / Double(middle.count)
        return 10 * log10(max(power, 1e-15) / 0.125)
    }

    @Test(arguments: [48_000, 44_100, 32_000, 96_000])
    func tonesAbove8Kilohertz_vanish(rate: Int) throws {
        let top = Double(rate) / 2
        for hertz in stride(from: 8050.0, to: top, by: 411) {
            #expect(try level(of: hertz, from: rate) < -60, "\(hertz) Hz of \(rate)")
        }
    }

    @Test(arguments: [48_000, 44_100, 32_000, 96_000])
    func tonesOfTheBand_stay(rate: Int) throws {
        for hertz in stride(from: 50.0, through: 7200, by: 391) {
            #expect(try abs(level(of: hertz, from: rate)) < 0.5, "\(hertz) Hz of \(rate)")
        }
    }

    @Test(arguments: [(48_000, 16_000), (44_100, 16_000), (32_000, 16_000), (8000, 16_000)])
    func everyFrameIsAccountedFor_howeverItComes(from: Int, to: Int) throws {
        for count in [1, 4410, 441_000, 441_007] {
            let resampler = try Resampler(from: from, to: to)
            var samples: [Int16] = []
            var left = count
            var step = 1
            while left > 0 {
                let receive = min(left, step)
                resampler.convert([Float](repeating: 0.1, count: receive), into: &samples)
                left -= receive
                step = step % 4801 + 997
            }
            resampler.finish(into: &samples)
            #expect(samples.count == (count * to + from - 1) / from)
        }
    }

    @Test func soundIsNotShifted() throws {
        let resampler = try Resampler(from: 48_000, to: 16_000)
        var sound = [Float](repeating: 0, count: 48_000)
        sound[24_000] = 1
        var samples: [Int16] = []
        resampler.convert(sound, into: &samples)
        resampler.finish(into: &samples)
        let peak = try #require(samples.indices.max { abs(samples[$0]) < abs(samples[$1]) })
        #expect(peak == 8000)
    }
}
