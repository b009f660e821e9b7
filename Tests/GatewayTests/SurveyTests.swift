// Surveys on a real database: collected, published and kept over a restart.
import Foundation
import Host
import Support
import Testing

@testable import Daemon
@testable import Queue
import QueueSupport
@testable import Records
import Setup
@testable import Status
import Upload

@Suite struct SurveyTests {
    /// A queue with a manual clock.
    private final class Fixture {
        private let temporary = TemporaryFolder()
        var path: String { temporary.path }
        let clock = ManualClock(
            testStart
        )
        var queue: Queue

        init() throws {
            queue = try Self.open(temporary.path, clock)
        }

        deinit {
            queue.close()
        }

        private static func open(_ path: String, _ clock: ManualClock, boot: String = "a") throws
            -> Queue
        {
            try Queue(at: path + "/queue.sqlite", bootID: boot, clock: clock)
        }

        func restart(boot: String = "a") throws {
            queue.close()
            queue = try Self.open(path, clock, boot: boot)
        }

        /// Has the database quarantined, and waits until its counters are known.
        func damage() throws {
            try queue.flushed()
            try queue.damage()
        }

        func record(synced: Bool) throws {
            let stamp = clock.stamp()
            try queue.perform { try $0.recordClock(stamp, synced: synced) }
        }

        func hear(_ beacon: Int, _ rssi: Int?, after seconds: Double = 1) {
            clock.advance(by: .milliseconds(Int64(seconds * 1000)))
            queue.accept(
                Sighting(
                    identity: BeaconIdentity(
                        kind: .ruuvi,
                        beaconID: "b\(beacon)",
                        address: BluetoothAddress(value: UInt64(beacon)),
                        addressType: .randomStatic
                    ),
                    rssi: rssi,
                    stamp: clock.stamp()
                )
            )
        }

        func stand(_ latitude: Double, _ longitude: Double, after seconds: Double = 0.5) {
            clock.advance(by: .milliseconds(Int64(seconds * 1000)))
            queue.record(
                place: Fix(
                    stamp: clock.stamp(),
                    mode: .threeDimensional,
                    latitude: latitude,
                    longitude: longitude
                )
            )
        }

        @discardableResult func ask(
            _ command: ControlRequest.Command,
            _ name: String? = nil
        ) -> (survey: SurveyReply, error: String?) {
            let desk = QueueRequestHandler(queue: queue, configuration: Configuration())
            let reply = desk.answer(ControlRequest(command, name))
            return (reply.survey ?? SurveyReply(), reply.error)
        }

        /// The records on the wire.
        func published() throws -> [SurveyRecord] {
            var configuration = Configuration()
            configuration.stateDirectory = path
            return try QueueQuestions(configuration).finishedSurveys()
        }

        func only() throws -> SurveyRecord {
            let records = try published()
            #expect(records.count == 1)
            return try #require(records.first)
        }
    }

    @Test func figures_areThoseOfTheSightingsBetweenStartAndStop() throws {
        let fixture = try Fixture()
        fixture.hear(1, -10)
        #expect(fixture.ask(.surveyStart, "north field").survey.open == "north field")
        for rssi in [-60, -70, -70, -90] { fixture.hear(1, rssi, after: 2) }
        fixture.hear(1, nil, after: 30)
        fixture.hear(2, -55)
        fixture.hear(2, -50)
        let reply = fixture.ask(.surveyStop)
        #expect(reply.survey.open == "north field")
        #expect(reply.survey.sightings == 7)
        fixture.hear(1, -10)
        let record = try fixture.only()
        #expect(record.name == "north field")
        #expect(record.sightings == 7)
        #expect(record.beacons.map(\.beaconId) == ["b1", "b2"])
        let first = record.beacons[0]
        #expect(first.count == 5)
        #expect(first.rssiMean == -72.5)
        #expect(first.rssiMedian == -70)
        // sqrt((12.5² + 2.5² + 2.5² + 17.5²) / 4)
        #expect(first.rssiStddev == 10.9)
        #expect(first.rssiMin == -90)
        #expect(first.rssiMax == -60)
        #expect(first.longestGap == 30)
        #expect(first.positioned == 0)
        #expect(record.beacons[1].rssiMedian == -52.5)
        #expect(record.track.fixes == 0)
        let json = String(decoding: record.json, as: UTF8.self)
        #expect(json.hasPrefix("{\"id\":\""))
        #expect(json.contains("\"timestamp\":\"2026-11-21T"))
        #expect(!json.contains("null"))
    }

    @Test func place_isThatOfTheNewestFix_ofTheTenSecondsBefore() throws {
        let fixture = try Fixture()
        fixture.stand(1, 1)
        fixture.ask(.surveyStart, "s")
        fixture.hear(1, -60)
        fixture.stand(46.5, 6.8)
        fixture.hear(1, -50, after: 0)
        fixture.hear(1, -60, after: 10)
        fixture.hear(1, -40, after: 0.1)
        fixture.stand(46.501, 6.8)
        fixture.hear(1, -55, after: 1)
        fixture.ask(.surveyStop)
        let record = try fixture.only()
        let beacon = record.beacons[0]
        // There is no position before the first fix and more than ten seconds after one.
        #expect(beacon.count == 5)
        #expect(beacon.positioned == 3)
        let json = String(decoding: record.json, as: UTF8.self)
        #expect(json.contains(#""centre":{"latitude":46.5003333,"longitude":6.8000000}"#))
        #expect(json.contains(#""strongest_at":{"latitude":46.5000000,"longitude":6.8000000}"#))
        #expect(record.track.fixes == 2)
        #expect(abs((record.track.distance ?? 0) - 111.2) < 0.1)
        #expect(json.contains(#""north_east":{"latitude":46.5010000,"longitude":6.8000000}"#))
    }

    @Test func survey_survivesProgramAndMachineRestarts() throws {
        let fixture = try Fixture()
        fixture.ask(.surveyStart, "s")
        fixture.stand(46.5, 6.8)
        fixture.hear(1, -60)
        try fixture.restart()
        #expect(fixture.ask(.surveyList).survey.open == "s")
        fixture.stand(46.5, 6.8)
        fixture.hear(1, -60)
        try fixture.restart(boot: "b")
        fixture.stand(46.5, 6.8)
        fixture.hear(1, -60, after: 39.5)
        #expect(try fixture.published().isEmpty)
        #expect(fixture.ask(.surveyStop).survey.sightings == 3)
        let record = try fixture.only()
        #expect(record.beacons[0].count == 3)
        #expect(record.beacons[0].longestGap == 40)
        #expect(record.track.fixes == 3)
        try fixture.restart()
        #expect(try fixture.only().id == record.id)
        #expect(fixture.ask(.surveyList).survey.open == nil)
    }

    /// A board without an RTC, no time in the field, and a power cut before the time is known.
    @Test func bootInWhichNobodyKnewTheTime_makesNoGapOfDecades() throws {
        let fixture = try Fixture()
        let right = fixture.clock.wall()
        fixture.clock.stepWall(to: WallTime(milliseconds: 0))
        fixture.ask(.surveyStart, "s")
        for _ in 0..<3 { fixture.hear(1, -60, after: 7) }
        try fixture.restart(boot: "b")
        fixture.clock.stepWall(to: right)
        try fixture.record(synced: true)
        for _ in 0..<3 { fixture.hear(1, -60, after: 3) }
        fixture.ask(.surveyStop)
        #expect(try fixture.only().beacons[0].longestGap == 7)
    }

    @Test func startBeforeClockSync_isReportedCorrected() throws {
        let fixture = try Fixture()
        let right = fixture.clock.wall()
        fixture.clock.stepWall(to: WallTime(milliseconds: 0))
        fixture.ask(.surveyStart, "north field")
        fixture.clock.advance(by: .seconds(60))
        fixture.clock.stepWall(to: right + .seconds(60))
        try fixture.record(synced: true)
        #expect(try SurveyReply(fixture.queue.flushed().reader()).startedAt == right.rfc3339)
    }

    @Test func interruptedStop_isCompletedByNext_withTheSameEnd() throws {
        let fixture = try Fixture()
        fixture.ask(.surveyStart, "s")
        fixture.hear(1, -60)
        _ = try fixture.queue.endSurvey()
        try fixture.restart()
        fixture.hear(1, -60)
        #expect(fixture.ask(.surveyStart, "t").error?.contains("\"s\" is going on") == true)
        #expect(fixture.ask(.surveyStop).survey.sightings == 1)
        #expect(try fixture.only().sightings == 1)
    }

    @Test func survey_survivesDamage_andCountsMissingRecords() throws {
        let fixture = try Fixture()
        fixture.hear(1, -60)
        fixture.ask(.surveyStart, "north field")
        let start = fixture.clock.wall()
        for _ in 0..<3 { fixture.hear(1, -60) }
        try fixture.damage()
        #expect(fixture.ask(.surveyList).survey.open == "north field")
        #expect(
            fixture.ask(.surveyStart, "t").error?.contains("\"north field\" is going on") == true
        )
        // Again, with a restart in between: the records of the first database are still missing.
        fixture.hear(1, -60)
        try fixture.damage()
        try fixture.restart()
        fixture.stand(46.5, 6.8)
        for _ in 0..<2 { fixture.hear(1, -70) }
        #expect(fixture.ask(.surveyStop).survey.sightings == 2)
        let record = try fixture.only()
        #expect(record.start == start.rfc3339)
        #expect(record.missingSightings == 4)
        #expect(record.beacons.map(\.count) == [2])
        #expect(record.track.fixes == 1)
        try fixture.damage()
        #expect(fixture.ask(.surveyList).survey.open == nil)
    }

    @Test func stopThatWasInterrupted_byDamage_isDoneByTheNextOne() throws {
        let fixture = try Fixture()
        fixture.ask(.surveyStart, "s")
        fixture.hear(1, -60)
        let end = try #require(try fixture.queue.endSurvey().end).stamp.wall
        try fixture.damage()
        fixture.hear(1, -60)
        #expect(fixture.ask(.surveyStop).survey.sightings == 0)
        let record = try fixture.only()
        #expect(record.end == end.rfc3339)
        #expect(record.missingSightings == 1)
    }

    /// The server refused the second survey, and a person dropped it.
    @Test func surveyThatIsGone_hidesNoOther() throws {
        let fixture = try Fixture()
        for name in ["first", "second", "third"] {
            fixture.ask(.surveyStart, name)
            fixture.ask(.surveyStop)
        }
        let range = try #require(try fixture.queue.flushed().pending(.surveys))
        try fixture.queue.perform { writer in
            _ = try writer.freeze(range, through: 1)
            var rest = range
            rest.first = 2
            let batch = try #require(try writer.freeze(rest, through: 2))
            try writer.quarantine(batch, message: "no")
            let held = try #require(try writer.quarantined(number: batch.id))
            #expect(try writer.drop(held))
        }
        #expect(try fixture.published().map(\.name) == ["first", "third"])
    }

    @Test func sightingsOfASurvey_areNotPurged_beforeItIsOver() throws {
        let fixture = try Fixture()
        fixture.hear(1, -60)
        fixture.ask(.surveyStart, "s")
        for _ in 0..<10 { fixture.hear(1, -60) }
        let range = try #require(try fixture.queue.flushed().pending(.beacons))
        try fixture.queue.perform { writer in
            let batch = try #require(try writer.freeze(range, through: range.last))
            try writer.uploaded(batch)
        }
        fixture.clock.advance(by: .seconds(3600))
        #expect(try fixture.queue.perform { try $0.purge(retention: .seconds(60)) } == false)
        #expect(fixture.ask(.surveyStop).survey.sightings == 10)
        #expect(try fixture.queue.perform { try $0.purge(retention: .seconds(60)) } == true)
        #expect(try fixture.only().missingSightings == nil)
    }

    @Test func invalidRequest_isReportedInASentence() throws {
        let fixture = try Fixture()
        #expect(fixture.ask(.surveyStop).error?.hasPrefix("no survey is going on") == true)
        for name in ["", " a", "a/b", "a\n", String(repeating: "a", count: 65), "\u{1B}[2J"] {
            let error = fixture.ask(.surveyStart, name).error
            #expect(error?.contains("is not a valid survey name") == true)
        }
        #expect(fixture.ask(.surveyStart, "Wald-3 süd").error == nil)
        #expect(
            fixture.ask(.surveyStart, "b").error
                == "survey \"Wald-3 süd\" is going on: `waypost survey stop` ends it"
        )
    }

    @Test func screens_fitATerminal() throws {
        let fixture = try Fixture()
        fixture.ask(.surveyStart, String(repeating: "ü", count: 32))
        for beacon in 0..<40 {
            for rssi in stride(from: -95, to: -40, by: 5) { fixture.hear(beacon, rssi - beacon) }
        }
        fixture.ask(.surveyStop)
        let record = try fixture.only()
        let screen = SurveyScreen.show(record)
        let lines = screen.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 25)
        #expect(lines.allSatisfy { $0.count <= 80 })
        #expect(screen.contains("and 24 beacons heard less"))
        let list = SurveyScreen.list(fixture.ask(.surveyList).survey, [record])
        #expect(list.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(SurveyScreen.picture(record.beacons[0]).contains("|"))
        // Beacons of one owner differ at the end of their ids.
        var twins = record
        twins.beacons[0].beaconId = "f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/7"
        #expect(SurveyScreen.show(twins).contains("f7826da6…c5b71e0893e/1/7 "))
    }
}
