import Testing

import Host

/// Nanoseconds of a duration, by its words, are those that its parts give.
@Suite struct DurationTests {
    private func byParts(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        return scaled &+ attoseconds / 1_000_000_000
    }

    @Test func nanoseconds_areThoseOfItsParts() {
        let seconds: [Int64] = [0, 1, 18, 19, 3600, 1_790_000_000, 9_223_372_035]
        let attoseconds: [Int64] = [
            0, 1, 999_999_999, 1_000_000_000, 446_744_073_709_551_615, 999_999_999_999_999_999,
        ]
        for whole in seconds {
            for part in attoseconds {
                let duration = Duration(secondsComponent: whole, attosecondsComponent: part)
                #expect(duration.nanoseconds == byParts(duration), "\(duration)")
                let negative = .zero - duration
                #expect(negative.nanoseconds == byParts(negative), "\(negative)")
            }
        }
        // The last whose low word is full, and the next.
        for low: UInt64 in [.max, 0, 1] {
            let duration = Duration(_high: low == .max ? 0 : 1, low: low)
            #expect(duration.nanoseconds == byParts(duration))
        }
    }

    @Test func whatDoesNotFit_isTheLargestOrTheLeast() {
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect(Duration.seconds(Int64.min).nanoseconds == .min)
        #expect(Duration.seconds(9_223_372_037).nanoseconds == .max)
        #expect((.zero - Duration.seconds(9_223_372_037)).nanoseconds == .min)
    }
}
