// `waypost measure` of the real program, as a person runs it.
import Foundation
import Support
import Testing

@Suite struct MeasureSystemTests {
    @Test func runningGateway_isMeasured() throws {
        let device = try Device()
        try device.start()
        let file = device.folder + "/board.json"
        let outcome = try device.run("measure", "--seconds", "1", "--json", file)
        #expect(outcome.status == 0)
        #expect(!outcome.error.contains("measuring"))
        #expect(outcome.output.contains("\nwake-ups  "))
        let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
        let object = try JSONSerialization.jsonObject(with: bytes) as? [String: Any]
        #expect((object?["private_bytes"] as? [String: Int])?["median"] ?? 0 > 500_000)
        #expect(object?["seconds"] as? Double ?? 0 >= 1)
        let only = try device.run("measure", "--seconds", "1", "--json", "-").output
        #expect(only.hasPrefix("{") && only.hasSuffix("}\n"))
    }

    @Test func termination_leavesNoFile() throws {
        let device = try Device()
        try device.start()
        let process = try device.begin("measure", "--json", device.folder + "/board.json")
        let name = "/proc/\(process.processIdentifier)/comm"
        try waitUntil("its start") {
            (try? String(contentsOfFile: name, encoding: .utf8)) == "waypost\n"
        }
        // SIGINT is ignored by programs that a script has started in the background.
        kill(process.processIdentifier, SIGTERM)
        try waitUntil("its end") { !process.isRunning }
        let names = try FileManager.default.contentsOfDirectory(atPath: device.folder)
        #expect(!names.contains { $0.contains("board") })
    }

    @Test func wrongUse_isRefusedAtOnce() throws {
        let device = try Device()
        for minutes in ["0", "1441", "-1"] {
            let outcome = try device.run("measure", "--minutes=\(minutes)")
            #expect(outcome.status == 64)
            #expect(outcome.error.contains("--minutes takes 1 to 1440"))
        }
        let stopped = try device.run("measure")
        #expect(stopped.status == 2)
        #expect(stopped.error.contains("waypost is not running"))
        let nowhere = try device.run("measure", "--json", device.folder + "/none/board.json")
        #expect(nowhere.status == 2)
        #expect(nowhere.error.contains("/none/board.json"))
    }
}
