// The timestamps that a record may have.
import Host
import Testing

@testable import ServerBase

@Suite struct RecordTimeTests {
    @Test func timestamps_areRead() throws {
        for (text, compact) in [
            ("2026-11-21T04:30:07Z", "20261121T043007Z"),
            ("2026-11-21t04:30:07.123456z", "20261121t043007123456z"),
            ("2024-02-29T04:30:07+01:00", "20240229T0430070100"),
            // A leap second, which a gateway may report at any time of day.
            ("2026-11-21T04:30:60Z", "20261121T043060Z"),
            ("2026-12-31T23:59:60.5Z", "20261231T2359605Z"),
        ] {
            let time = try #require(RecordTime(text), "\(text)")
            #expect(time.compact == compact)
            #expect(time.date == text.prefix(10))
        }
    }

    @Test func otherTexts_areRefused() {
        for text in [
            "", "2026-02-29T04:30:07Z", "2026-11-21T04:30:61Z", "2026-11-21T24:00:00Z",
            "2026-11-21T04:60:60Z", "2026-11-21T04:30:07.Z", "2026-11-21T04:30:07+24:00",
            "2026-11-21 04:30:07Z", "2026-11-21T04:30:07", "2026-13-21T04:30:60Z",
            "2026-11-21T04:30:07.123456789012345678901Z", "2026-11-21T04:30:60Zx",
        ] {
            #expect(RecordTime(text) == nil, "\(text)")
        }
    }

    @Test func onlyAKnownTime_isAhead() throws {
        let now = WallTime(milliseconds: 1_795_235_407_000)
        for (text, isAhead) in [
            ("2026-11-21T04:30:07Z", false), ("2026-11-22T04:31:00Z", true),
            ("2999-11-22T04:31:60Z", false),
        ] {
            #expect(try #require(RecordTime(text)).isAhead(of: now) == isAhead, "\(text)")
        }
    }
}
