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
}
