// `waypost survey` on the real program: survives kill -9, published at the stop and not before.
import Foundation
import Glibc
import Support
import Testing

@Suite struct SurveySystemTests {
    private final class Fixture: Device {
        init() throws {
            let capture = Tree.path("Tests/Fixtures/beacons/capture.btsnoop")
            try super.init(
                """
                [beacons]
                source = "btsnoop:\(capture)"
                replay_speed = 0
                max_rate = 1000
                """
            )
        }

        func sightings() throws -> Int {
            try stream("linux_bluez_beacons")["pending"] as? Int ?? 0
        }

        func streams() throws -> [String] {
            (try status()["streams"] as? [String: Any] ?? [:]).keys.sorted()
        }
    }

    @Test func survey_losesNothingToAKill_andEndsWithOneRecord() throws {
        let fixture = try Fixture()
        try fixture.start()
        try waitUntil("the first replay") { try fixture.sightings() > 0 }
        #expect(try fixture.run("survey", "stop").status == 2)
        #expect(try fixture.run("survey", "start", "a/b").status == 64)
        let before = try fixture.sightings()
        #expect(try !fixture.streams().contains("waypost_surveys"))
        // The replay is over: new sightings come from the next daemon.
        #expect(try fixture.run("survey", "start", "hill").status == 0)
        #expect(try fixture.run("survey", "start", "hill").error.contains("is going on"))
        fixture.killDaemon()
        try fixture.start()
        try waitUntil("the second replay") { try fixture.sightings() >= before * 2 }
        fixture.killDaemon()
        let open = try fixture.run("survey", "list", "--json").output
        #expect(open.contains(#""open":{"name":"hill""#))
        #expect(open.contains(#""surveys":[]"#))
        try fixture.start()
        try waitUntil("the third replay") { try fixture.sightings() >= before * 3 }
        let total = try fixture.sightings()
        #expect(try fixture.run("survey", "stop").output.contains("\(total - before) sightings"))
        // Shown only once a survey exists.
        try waitUntil("the survey in status") {
            try fixture.streams().contains("waypost_surveys")
        }
        let text = try fixture.run("survey", "show", "hill", "--json").output
        let record = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(record?["sightings"] as? Int == total - before)
        let beacons = record?["beacons"] as? [[String: Any]] ?? []
        #expect(beacons.compactMap { $0["count"] as? Int }.reduce(0, +) == total - before)
        let screen = try fixture.run("survey", "show", "hill").output
        #expect(screen.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(try fixture.run("survey", "show", "dale").status == 2)
    }
}
