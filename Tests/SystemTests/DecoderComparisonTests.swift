// Compares our decoders with other implementations, on thousands of generated payloads.
import Foundation
import Support
import Testing

/// `Tests/Fixtures/beacons/differential.py` lists the intended differences with their reasons.
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
        let data = try Process.run(Tree.python, arguments).data
        let outcome = try JSONDecoder().decode(Outcome.self, from: data)
        #expect(outcome.compared == 10_000)
        #expect(outcome.readings >= 10_000)
        #expect(outcome.differences == 0, "\(outcome.first.joined(separator: "; "))")
        // Each listed difference occurs, so its reason is tested, and no other occurs.
        #expect(Set(outcome.explained.keys) == Set(explained))
    }
}
