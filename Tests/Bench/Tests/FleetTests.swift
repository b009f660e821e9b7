import Foundation
import Support
import Testing

/// Upload pacing spreads a fleet's requests; simulated with the gateway's code.
@Suite struct FleetTests {
    @Test(arguments: ["1", "2", "3"])
    func fleet_comesBackWithAtMostTwiceItsSteadyRate(seed: String) throws {
        let temporary = TemporaryFolder()
        let folder = temporary.path
        let plot = folder + "/fleet.svg"
        let arguments = ["--gateways", "1000", "--outage", "2h", "--seed", seed, "--json"]
        let result = try BenchTests.run(["fleet"] + arguments + ["--plot", plot])
        #expect(result.status == 0)
        let outages = try #require(
            try JSONSerialization.jsonObject(with: result.output) as? [[String: Any]]
        )
        #expect(outages.count == 5)
        for outage in outages {
            let name = outage["outage"] as? String ?? ""
            let steady = outage["steady_mean"] as? Double ?? 0
            // Four streams of a thousand gateways in five minutes.
            #expect(abs(steady - 13.3) < 0.3, "\(name)")
            let during = outage["during_mean"] as? Double ?? 0
            #expect(during > 0, "\(name)")
            let ratio = outage["after_to_steady"] as? Double ?? 9
            #expect(ratio <= 2, "\(name)")
            #expect(outage["caught_up"] as? Bool == true, "\(name)")
        }
        let drawing = try String(contentsOfFile: plot, encoding: .utf8)
        #expect(drawing.hasPrefix("<svg "))
        #expect(drawing.hasSuffix("</svg>\n"))
        #expect(drawing.components(separatedBy: "<polyline").count == 6)
        // The same seed gives the same fleet.
        #expect(try BenchTests.run(["fleet"] + arguments).output == result.output)
    }
}
