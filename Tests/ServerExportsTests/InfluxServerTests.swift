// Debian's own InfluxDB with the receiver: it has all points, and answers Grafana's queries.
import Foundation
import ReceiverSupport
import Support
import Testing

/// An InfluxDB for one test, with a user and a password.
private final class InfluxServer {
    private let folder = TemporaryFolder()
    private let port = freePort()
    private let user = "anna:s3 cr=et"
    private var process = Process()

    init() throws {
        try folder.write(
            """
            reporting-enabled = false
            bind-address = "127.0.0.1:0"
            [meta]
            dir = "\(folder.path)/meta"
            [data]
            dir = "\(folder.path)/data"
            wal-dir = "\(folder.path)/wal"
            [monitor]
            store-enabled = false
            [http]
            bind-address = "127.0.0.1:\(port)"
            auth-enabled = true
            """,
            to: "conf"
        )
        try start()
        let (name, password) = ("anna", "s3 cr=et")
        _ = try ask("CREATE USER \(name) WITH PASSWORD '\(password)' WITH ALL PRIVILEGES")
    }

    func start() throws {
        process = try .started(Tree.tool("influxd"), ["-config", folder.path + "/conf"])
        // Any answer will do.
        try waitUntil("influxd") { try run("SHOW DATABASES").status == 0 }
    }

    func kill() { process.killAndWait() }

    deinit { kill() }

    var url: String { "http://127.0.0.1:\(port)/write?db=way%20post" }

    func tokenFile() throws -> String { try folder.write(user + "\n", to: "token") }

    private func run(_ query: String) throws -> Outcome {
        try Process.run(
            "/usr/bin/curl",
            [
                "-s", "-G", "-u", user, "http://127.0.0.1:\(port)/query", "--data-urlencode",
                "db=way post", "--data-urlencode", "q=\(query)",
            ]
        )
    }

    /// Returns the series that answer a query; throws for an invalid query.
    func ask(_ query: String) throws -> [[String: Any]] {
        let json = try JSONSerialization.jsonObject(with: run(query).data) as? [String: Any]
        guard let results = json?["results"] as? [[String: Any]], let result = results.first,
            result["error"] == nil
        else { throw NeverHappened(what: "an answer to \(query): \(json ?? [:])") }
        return result["series"] as? [[String: Any]] ?? []
    }

    /// Returns the rows of a measurement, each as its columns.
    func rows(_ query: String) throws -> [[String: Any]] {
        try ask(query).flatMap { (series: [String: Any]) -> [[String: Any]] in
            let columns = series["columns"] as? [String] ?? []
            return (series["values"] as? [[Any]] ?? []).map {
                Dictionary(zip(columns, $0)) { $1 }
            }
        }
    }
}

@Suite(.enabled(if: Tree.hasTool("influxd")))
struct InfluxServerTests {
    private static let day = "2026-11-21"

    private func waitFor(_ rows: Int, in stream: String, of influx: InfluxServer) throws {
        try waitUntil("\(rows) rows of \(stream)", limit: .seconds(300)) {
            try influx.rows("SELECT * FROM \"\(stream)\"").count == rows
        }
    }

    private func receiver(_ influx: InfluxServer) throws -> ReceiverProcess {
        try ReceiverProcess(["--influx", influx.url, "--influx-token-file", influx.tokenFile()])
    }

    private func send(_ receiver: ReceiverProcess) throws {
        let clock = #","clock":"synced""#
        func send(_ stream: String, _ records: [(time: String, members: String)]) throws {
            try receiver.send(
                stream,
                on: Self.day,
                records.map { ($0.time, $0.members + clock) }
            )
        }
        let battery = #""battery_percent":80,"humidity_percent":45.5,"temperature_c":21"#
        try send(
            "weather",
            [
                ("04:30:07.123", #""t":1,"a b,c=\\":"\"q\"\\ €","ok":true,"# + "\(battery)"),
                ("04:30:07.123", #""t":1.5,"text":"two\nlines","list":[1]"#),
                ("04:30:07.123", #""t":"no number""#), ("04:30:08", #""t":-2e3"#),
            ]
        )
        let beacon = #""kind":"ruuvi","beacon_id":"c0:ff","rssi":-71"#
        try send(
            "linux_bluez_beacons",
            [
                ("04:30:07.123", #"\#(beacon),"telemetry":{"temperature_c":21.5}"#),
                ("04:30:07.123", beacon),
            ]
        )
        try send(
            "linux_gpsd_location",
            [
                ("04:30:00", #""latitude":47.5,"longitude":-0.1,"satellites":9"#)
            ]
        )
        try send(
            "linux_alsa_audio",
            [
                ("04:30:00", #""audio_data":"QUJD","audio_format":"ogg","average_db_level":-40.5"#)
            ]
        )
        try send(
            "waypost_events",
            [
                (
                    "04:30:00",
                    #""kind":"gap","source":"storage","detail":{"records":5,"code":"E004"}"#
                )
            ]
        )
    }

    @Test func realInfluxDB_hasEachRecordOnce_asItWas() throws {
        let influx = try InfluxServer()
        let receiver = try receiver(influx)
        try send(receiver)
        // The database is created after the points arrive.
        _ = try influx.ask("CREATE DATABASE \"way post\"")
        try waitFor(3, in: "weather", of: influx)
        try waitFor(1, in: "waypost_events", of: influx)
        let rows = try influx.rows("SELECT * FROM weather")
        let first = try #require(rows.first)
        #expect(first["time"] as? String == "2026-11-21T04:30:07.123Z")
        #expect(first["device_id"] as? String == "d1")
        #expect(first["a b,c=/"] as? String == #""q"\ €"#)
        #expect(first["ok"] as? Bool == true)
        #expect(rows[1]["time"] as? String == "2026-11-21T04:30:07.123000001Z")
        #expect(rows[1]["text"] as? String == "two lines")
        #expect(rows.compactMap { $0["t"] as? Double } == [1, 1.5, -2000])
        let beacons = try influx.rows("SELECT * FROM linux_bluez_beacons")
        #expect(beacons.count == 1)
        #expect(beacons.first?["rssi"] as? Int == -71)
        #expect(try influx.rows("SELECT * FROM linux_gpsd_location").count == 1)
        #expect(try influx.ask("SELECT * FROM linux_alsa_audio").isEmpty)
        // Counted once the points are there.
        let counts = #""influx":{"left_out":1,"points":6,"refused":1,"state":"up_to_date"}"#
        try waitUntil("counts") {
            try receiver.request(RawRequest.health).body.contains(counts)
        }
        try expectAnswers(of: influx)
        try restart(influx, behind: receiver)
    }

    /// Checks that InfluxDB understands and answers each query of the dashboard.
    private func expectAnswers(of influx: InfluxServer) throws {
        let file = Tree.path("deploy/grafana/waypost.json")
        let json = try JSONSerialization.jsonObject(
            with: Data(contentsOf: URL(fileURLWithPath: file))
        )
        let dashboard = try #require(json as? [String: Any])
        let panels = try #require(dashboard["panels"] as? [[String: Any]])
        let variables = (dashboard["templating"] as? [String: Any])?["list"] as? [[String: Any]]
        let targets = panels.flatMap { $0["targets"] as? [[String: Any]] ?? [] } + (variables ?? [])
        var asked = 0
        for target in targets where target["type"] as? String != "datasource" {
            var query = try #require(target["query"] as? String)
            for (name, value) in [
                ("$timeFilter", "time >= '2026-11-20T00:00:00Z' AND time < '2026-11-23T00:00:00Z'"),
                ("$__interval", "1h"), ("$device", ".*"), ("$stream", "weather"), ("$field", "t"),
            ] { query = query.replacingOccurrences(of: name, with: value) }
            #expect(try influx.ask(query).isEmpty == false, "\(query)")
            asked += 1
        }
        #expect(asked == 10)
    }

    /// Killed while points arrive, it has each once after the restart.
    private func restart(_ influx: InfluxServer, behind receiver: ReceiverProcess) throws {
        for batch in 0..<40 {
            let records = (0..<50).map { ("05:00:00", #""batch":\#(batch),"n":\#($0)"#) }
            try receiver.send("many", on: Self.day, records)
            if batch == 5 {
                try waitUntil("some") { try !influx.rows("SELECT n FROM many LIMIT 1").isEmpty }
            }
            if batch == 20 { influx.kill() }
        }
        try influx.start()
        try waitFor(2000, in: "many", of: influx)
        let pairs = try influx.rows("SELECT batch, n FROM many").map {
            "\($0["batch"] ?? "") \($0["n"] ?? "")"
        }
        #expect(Set(pairs).count == 2000)
    }
}
