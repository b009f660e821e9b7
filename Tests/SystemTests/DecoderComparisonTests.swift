// Our decoders beside other people's, on payloads made by the thousand.
import Foundation
import Support
import Testing

/// `Tests/Fixtures/beacons/differential.py` has the table of differences that are meant, with the reasons.
@Suite struct DecoderComparisonTests {
    private struct Outcome: Decodable {
        var compared: Int
        var readings: Int
        var explained: [String: Int]
        var differences: Int
        var first: [String]
    }

    @Test(arguments: [
        ("bthome", ["factor_0.35", "event_none", "event_unknown", "invalid_utf8"]),
        ("bthome_encrypted", ["factor_0.35", "event_none", "event_unknown", "invalid_utf8"]),
        ("ruuvi", ["two_decimals", "axis_unavailable", "not_available"]),
        ("ibeacon", []),
    ])
    func noDifference_isUnexplained(decoder: String, explained: [String]) throws {
        let script = Tree.path("Tests/Fixtures/beacons/differential.py")
        let arguments = [script, Tree.program("waypost"), decoder, "10000"]
        let data = try Process.run(ObjectStore.python, arguments).data
        let outcome = try JSONDecoder().decode(Outcome.self, from: data)
        #expect(outcome.compared == 10_000)
        #expect(outcome.readings >= 10_000)
        #expect(outcome.differences == 0, "\(outcome.first.joined(separator: "; "))")
        // Each kind of difference does occur, so its reason is tried; and no other does.
        #expect(Set(outcome.explained.keys) == Set(explained))
    }
}
