import Host
import Testing

@Suite struct TimestampTests {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_795_235_407_123, "2026-11-21T04:30:07.123Z"),
        (2_147_483_647_999, "2038-01-19T03:14:07.999Z"),
        (2_147_483_648_000, "2038-01-19T03:14:08.000Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (4_294_967_296_000, "2106-02-07T06:28:16.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (Int64.max, "9999-12-31T23:59:59.999Z"),
        (Int64.min, "0000-01-01T00:00:00.000Z"),
    ])
    func rfc3339_isWrittenInUTCWithMilliseconds(milliseconds: Int64, text: String) {
        #expect(WallTime(milliseconds: milliseconds).rfc3339 == text)
    }

    @Test(arguments: [
        ("2026-11-21T04:30:07.123Z", 1_795_235_407_123),
        ("2026-11-21T04:30:07Z", 1_795_235_407_000),
        ("2026-11-21T06:00:07.1+01:30", 1_795_235_407_100),
        ("1970-01-01T00:00:00Z", 0), ("2038-01-19T03:14:08Z", 2_147_483_648_000),
        ("2106-02-07T06:28:16Z", 4_294_967_296_000),
    ])
    func rfc3339_isRead(text: String, milliseconds: Int64) {
        #expect(WallTime(rfc3339: text)?.milliseconds == milliseconds)
    }

    @Test(arguments: ["", "2026", "2026-11-21", "2026-13-01T00:00:00Z", "2026-11-21T04:30:07", "x"])
    func rfc3339_refusesAnythingElse(text: String) {
        #expect(WallTime(rfc3339: text) == nil)
    }
}
