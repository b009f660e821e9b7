import Foundation
import Support
import Testing

/// Runs the real benchmark with few rows, so that it takes seconds.
@Suite struct BenchTests {
    static func run(_ arguments: [String]) throws -> (status: Int32, output: Data) {
        let outcome = try Process.run(Tree.program("waypost-bench"), arguments)
        return (outcome.status, outcome.data)
    }

    @Test func queue_reportsEachSide_inJSON() throws {
        let temporary = TemporaryFolder()
        let folder = temporary.path
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
        #expect((json["rows"] as? [[String: Any]])?.isEmpty == false)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }

    @Test func receiver_isMeasuredBesideNginx() throws {
        let temporary = TemporaryFolder()
        let result = try Self.run([
            "receiver", "--gateways", "20", "--rounds", "2", "--records", "10", "--json",
            "--directory",
            temporary.path,
        ])
        #expect(result.status == 0)
        let json = try #require(
            try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
        )
        for side in ["receiver", "nginx"] {
            let figures = try #require(json[side] as? [String: Double])
            for name in ["batches_per_s", "latency_p99_ms", "resident_peak_bytes"] {
                #expect(figures[name] ?? 0 > 0, "\(side) \(name)")
            }
        }
        #expect(json["ratio"] as? Double ?? 0 > 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path).isEmpty)
    }

    @Test func queue_namesTheFolder_whereNothingCanBeMade() throws {
        let result = try Self.run(["queue", "--directory", "/nonexistent"])
        #expect(result.status != 0)
        #expect(result.output.isEmpty)
    }

    private static func upload(_ arguments: [String]) throws -> [[String: Any]] {
        let temporary = TemporaryFolder()
        let folder = temporary.path
        let result = try run(
            ["upload", "--rounds", "1", "--json", "--directory", folder] + arguments
        )
        #expect(result.status == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        let json = try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
        #expect((json?["rows"] as? [[String: Any]])?.isEmpty == false)
        return try #require(json?["cases"] as? [[String: Any]])
    }

    @Test func upload_reportsBothSides_forEachCompression() throws {
        let cases = try Self.upload(["--records", "3000", "--chunks", "3"])
        let names = cases.map { "\($0["records"] ?? "") \($0["compression"] ?? "")" }
        #expect(
            names == [
                "sightings gzip", "sightings zstd", "sightings none", "sound gzip", "sound zstd",
                "sound none",
            ]
        )
        for one in cases {
            #expect(one["count"] as? Int == (one["records"] as? String == "sound" ? 3 : 3000))
            #expect(one["ratio"] as? Double ?? 0 > 0)
            for side in ["waypost", "curl"] {
                let figures = try #require(one[side] as? [String: Double])
                for name in [
                    "records_per_s", "wire_mb_per_s", "json_mb_per_s", "resident_peak_bytes",
                ] {
                    #expect(figures[name] ?? 0 > 0, "\(side) \(name)")
                }
            }
        }
    }

    /// Parses one figure per line, as a benchmark worker prints them.
    private static func worker(_ arguments: [String]) throws -> [String: Double] {
        let result = try run(["worker"] + arguments)
        #expect(result.status == 0)
        let lines = String(decoding: result.output, as: UTF8.self).split(separator: "\n")
        return lines.reduce(into: [:]) { figures, line in
            let words = line.split(separator: " ")
            figures[String(words[0])] = words.last.flatMap { Double($0) }
        }
    }

    @Test func hundredMegabyteBody_usesConstantMemory() throws {
        let database = NSTemporaryDirectory() + "wp-bench-\(UUID().uuidString.prefix(8)).sqlite"
        defer {
            for end in ["", "-wal", "-shm", "-1.body"] {
                try? FileManager.default.removeItem(atPath: database + end)
            }
        }
        let task = ["--database", database, "--rows", "850"]
        _ = try Self.worker(["sound"] + task)
        let figures = try Self.worker(
            ["bodies"] + task + [
                "--audio", "--compression", "zstd", "--max-batch-bytes", "200000000",
            ]
        )
        #expect(figures["bodies"] == 1)
        #expect(figures["plain_bytes"] ?? 0 > 100e6)
        let peak = try #require(figures["resident_peak_bytes"])
        // Less than half of the body, program and libraries included.
        #expect(peak > 0 && peak < 48e6, "\(peak)")
    }
}
