import Foundation
import Testing

/// The property that the pacing of uploads is there for, simulated with the gateway's own code.
@Suite struct FleetTests {
    private static func run(_ arguments: [String]) throws -> (status: Int32, output: Data) {
        let process = Process()
        process.executableURL = BenchTests.program
        process.arguments = ["fleet"] + arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, data)
    }

    @Test(arguments: ["1", "2", "3"])
    func fleet_comesBackWithAtMostTwiceItsSteadyRate(seed: String) throws {
        let folder = NSTemporaryDirectory() + "wp-fleet-" + UUID().uuidString.prefix(8)
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let plot = folder + "/fleet.svg"
        let arguments = ["--gateways", "1000", "--outage", "2h", "--seed", seed, "--json"]
        let result = try Self.run(arguments + ["--plot", plot])
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
        // The same seed, the same fleet.
        #expect(try Self.run(arguments).output == result.output)
    }
}
