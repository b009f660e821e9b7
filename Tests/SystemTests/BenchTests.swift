import Foundation
import Testing

/// The real bench, with so few rows that it is done in seconds.
@Suite struct BenchTests {
    static var program: URL {
        DaemonTests.program.deletingLastPathComponent().appendingPathComponent("waypost-bench")
    }

    private static func run(_ arguments: [String]) throws -> (status: Int32, output: Data) {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, data)
    }

    @Test func queue_reportsEachSide_inJSON() throws {
        let folder = NSTemporaryDirectory() + "wp-bench-" + UUID().uuidString.prefix(8)
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let result = try Self.run([
            "queue", "--rows", "2000", "--rounds", "1", "--backlog", "3000", "--live", "1",
            "--json",
            "--directory", folder,
        ])
        #expect(result.status == 0)
        let json = try #require(
            try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
        )
        for rhythm in ["paced", "full_speed"] {
            let sides = try #require(json[rhythm] as? [String: Any])
            for side in ["queue", "path", "c", "c_json"] {
                let figures = try #require(sides[side] as? [String: Double], "\(rhythm) \(side)")
                for name in [
                    "rows_per_s", "cpu_us_per_row", "wchar_per_row", "resident_peak_bytes",
                ] {
                    #expect(figures[name] ?? 0 > 0, "\(rhythm) \(side) \(name)")
                }
            }
        }
        let backlog = try #require(json["backlog"] as? [String: Any])
        #expect(backlog["records"] as? Int == 3000)
        let drain = try #require(backlog["drain"] as? [String: Double])
        #expect(drain["at_100_resident_peak_bytes"] ?? 0 > 0)
        let journal = try #require(json["journal"] as? [String: Double])
        #expect(journal["journal_peak_bytes"] ?? 0 > 0)
        #expect((json["goals"] as? [[String: Any]])?.isEmpty == false)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }

    @Test func queue_namesTheFolder_whereNothingCanBeMade() throws {
        let result = try Self.run(["queue", "--directory", "/nonexistent"])
        #expect(result.status != 0)
        #expect(result.output.isEmpty)
    }

    /// The property that the pacing of uploads is there for.
    @Test(arguments: ["1", "2", "3"])
    func fleet_comesBackWithAtMostTwiceItsSteadyRate(seed: String) throws {
        let folder = NSTemporaryDirectory() + "wp-fleet-" + UUID().uuidString.prefix(8)
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let plot = folder + "/fleet.svg"
        let arguments = ["fleet", "--gateways", "1000", "--outage", "2h", "--seed", seed, "--json"]
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
        #expect(try Self.run(arguments).output == result.output)
    }
}
