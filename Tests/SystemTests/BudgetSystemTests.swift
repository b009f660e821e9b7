// A gateway with a daily budget, and the reference server.
import Foundation
import Support
import Testing

@Suite struct BudgetSystemTests {
    private func configure(_ device: Device, _ endpoint: String, _ more: String) throws {
        try device.configure(
            """
            [upload]
            required = false
            endpoint = "\(endpoint)"
            token_file = "\(device.folder)/token"
            interval = "24h"
            compression = "none"
            \(more)
            [stream.weather]
            """
        )
    }

    private func budget(_ device: Device) throws -> [String: Any] {
        let upload = try device.status()["upload"] as? [String: Any] ?? [:]
        return upload["budget"] as? [String: Any] ?? [:]
    }

    @Test func recordsOverBudget_areReported_andWaitForARequest() throws {
        let device = try Device()
        try device.write("demo-token", "token", mode: 0o600)
        let endpoint = try device.startReceiver()
        try configure(device, endpoint, "daily_budget = \"100kB\"")
        try device.start()
        // Each other than the one before: in columns twenty of one text would be one.
        let records = (10..<30).map {
            "{\"text\": \"\($0)\(String(repeating: "x", count: 12_000))\"}\n"
        }.joined()
        #expect(try device.run("put", "weather", input: records).status == 0)
        let sync = try device.run("sync")
        #expect(sync.status == 1)
        #expect(sync.output.contains("pending, waits: daily budget"))
        #expect(sync.error.contains("`waypost sync --over-budget` does not wait"))
        let stream = try device.stream("weather")
        #expect(stream["waits_for"] as? String == "daily budget")
        #expect((1...8).contains(stream["uploaded"] as? Int ?? 0))
        let spent = try #require(try budget(device)["spent_bytes"] as? Int)
        #expect((50_000...100_000).contains(spent))
        #expect(try device.run("status").output.contains(" of 100.0 kB today"))
        // Neither a kill nor a reload resets the budget.
        device.killDaemon()
        try device.start()
        #expect(try device.run("sync").status == 1)
        #expect(try budget(device)["spent_bytes"] as? Int ?? 0 >= spent)
        try configure(device, endpoint, "daily_budget = \"101kB\"")
        device.signal(SIGHUP)
        try waitUntil("the reload") { try budget(device)["bytes"] as? Int == 101_000 }
        #expect(try device.run("sync").status == 1)
        #expect(try budget(device)["spent_bytes"] as? Int ?? 0 >= spent)
        #expect(try device.run("sync", "--over-budget").status == 0)
        #expect(try device.stream("weather")["pending"] as? Int == 0)
        #expect(try budget(device)["spent_bytes"] as? Int ?? 0 > 240_000)
    }
}
