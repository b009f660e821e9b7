// Sizes and durations are exact in both directions.
import Host
import Testing

@testable import Configuration

@Suite struct QuantityTests {
    @Test(arguments: [
        ("0s", 0), ("1ms", 1_000_000), ("2.5ms", 2_500_000), ("0.5s", 500_000_000),
        ("1.000000001s", 1_000_000_001), ("10.24s", 10_240_000_000), ("5m", 300_000_000_000),
        ("5 m", 300_000_000_000), ("1.5h", 5_400_000_000_000), ("3d", 259_200_000_000_000),
        ("007s", 7_000_000_000),
    ])
    func duration_isExact(text: String, nanoseconds: Int64) {
        #expect(quantity(text, units: Unit.durations) == nanoseconds)
    }

    @Test(arguments: [
        "", "5", "m", "5x", "5M", "-5m", "+5m", ".5s", "5.s", "5..0s", "5m30s", "1e3s", " 5m",
        "5m ",
        "5  m", "0.0000000001s", "9999999999999999s", "999999999999d", "５m", "5\u{301}m", "5m\u{0}",
    ])
    func duration_isNothingElse(text: String) {
        #expect(quantity(text, units: Unit.durations) == nil)
    }

    @Test(arguments: [
        ("1kB", 1000), ("1KiB", 1024), ("1.5GB", 1_500_000_000), ("1.5GiB", 1_610_612_736),
        ("0.001MB", 1000), ("8MiB", 8_388_608),
    ])
    func size_isExact(text: String, bytes: Int64) {
        #expect(quantity(text, units: Unit.sizes) == bytes)
    }

    @Test(arguments: ["1KB", "1mb", "1B", "1TB", "0.0001kB", "1.0001KiB"])
    func size_isNothingElse(text: String) {
        #expect(quantity(text, units: Unit.sizes) == nil)
    }

    @Test(arguments: [
        "0s", "1ms", "2.5ms", "0.000001ms", "999.999999ms", "1s", "1.5s", "10.24s", "90s", "5m",
        "3d",
        "1.000000001s", "36h",
    ])
    func durationText_isReadBack(text: String) throws {
        let nanoseconds = try #require(quantity(text, units: Unit.durations))
        #expect(durationText(.nanoseconds(nanoseconds)) == text)
    }

    @Test(arguments: [
        (0, "0"), (1, "1"), (1000, "1kB"), (1024, "1KiB"), (8_388_608, "8MiB"),
        (2_000_000_000, "2GB"), (1_536_000, "1500KiB"), (1_500_000, "1500kB"),
    ])
    func sizeText_takesTheLargestWholeUnit(bytes: Int, text: String) {
        #expect(sizeText(bytes) == text)
    }
}
