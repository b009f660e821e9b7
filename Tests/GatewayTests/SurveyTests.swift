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
    private final class Bench {
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

        func note(synced: Bool) throws {
            let stamp = clock.stamp()
            try queue.perform { try $0.noteClock(stamp, synced: synced) }
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
            queue.note(
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
        let bench = try Bench()
        bench.hear(1, -10)
        #expect(bench.ask(.surveyStart, "north field").survey.open == "north field")
        for rssi in [-60, -70, -70, -90] { bench.hear(1, rssi, after: 2) }
        bench.hear(1, nil, after: 30)
        bench.hear(2, -55)
        bench.hear(2, -50)
        let reply = bench.ask(.surveyStop)
        #expect(reply.survey.open == "north field")
        #expect(reply.survey.sightings == 7)
        bench.hear(1, -10)
        let record = try bench.only()
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
        let bench = try Bench()
        bench.stand(1, 1)
        bench.ask(.surveyStart, "s")
        bench.hear(1, -60)
        bench.stand(46.5, 6.8)
        bench.hear(1, -50, after: 0)
        bench.hear(1, -60, after: 10)
        bench.hear(1, -40, after: 0.1)
        bench.stand(46.501, 6.8)
        bench.hear(1, -55, after: 1)
        bench.ask(.surveyStop)
        let record = try bench.only()
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

    @Test func survey_goesOnThroughARestart_ofTheProgramAndOfTheMachine() throws {
        let bench = try Bench()
        bench.ask(.surveyStart, "s")
        bench.stand(46.5, 6.8)
        bench.hear(1, -60)
        try bench.restart()
        #expect(bench.ask(.surveyList).survey.open == "s")
        bench.stand(46.5, 6.8)
        bench.hear(1, -60)
        try bench.restart(boot: "b")
        bench.stand(46.5, 6.8)
        bench.hear(1, -60, after: 39.5)
        #expect(try bench.published().isEmpty)
        #expect(bench.ask(.surveyStop).survey.sightings == 3)
        let record = try bench.only()
        #expect(record.beacons[0].count == 3)
        #expect(record.beacons[0].longestGap == 40)
        #expect(record.track.fixes == 3)
        try bench.restart()
        #expect(try bench.only().id == record.id)
        #expect(bench.ask(.surveyList).survey.open == nil)
    }

    /// A board without an RTC, no time in the field, and a power cut before the time is known.
    @Test func bootInWhichNobodyKnewTheTime_makesNoGapOfDecades() throws {
        let bench = try Bench()
        let right = bench.clock.wall()
        bench.clock.stepWall(to: WallTime(milliseconds: 0))
        bench.ask(.surveyStart, "s")
        for _ in 0..<3 { bench.hear(1, -60, after: 7) }
        try bench.restart(boot: "b")
        bench.clock.stepWall(to: right)
        try bench.note(synced: true)
        for _ in 0..<3 { bench.hear(1, -60, after: 3) }
        bench.ask(.surveyStop)
        #expect(try bench.only().beacons[0].longestGap == 7)
    }

    @Test func startOfBeforeTheClockWasRight_isToldAsItWas() throws {
        let bench = try Bench()
        let right = bench.clock.wall()
        bench.clock.stepWall(to: WallTime(milliseconds: 0))
        bench.ask(.surveyStart, "north field")
        bench.clock.advance(by: .seconds(60))
        bench.clock.stepWall(to: right + .seconds(60))
        try bench.note(synced: true)
        #expect(try SurveyReply(bench.queue.flushed().reader()).startedAt == right.rfc3339)
    }

    @Test func stopThatWasInterrupted_isDoneByTheNextOne_withTheSameEnd() throws {
        let bench = try Bench()
        bench.ask(.surveyStart, "s")
        bench.hear(1, -60)
        _ = try bench.queue.endSurvey()
        try bench.restart()
        bench.hear(1, -60)
        #expect(bench.ask(.surveyStart, "t").error?.contains("\"s\" is going on") == true)
        #expect(bench.ask(.surveyStop).survey.sightings == 1)
        #expect(try bench.only().sightings == 1)
    }

    @Test func survey_goesOnInTheNextDatabase_andCountsWhatStaysInADamagedOne() throws {
        let bench = try Bench()
        bench.hear(1, -60)
        bench.ask(.surveyStart, "north field")
        let start = bench.clock.wall()
        for _ in 0..<3 { bench.hear(1, -60) }
        try bench.damage()
        #expect(bench.ask(.surveyList).survey.open == "north field")
        #expect(bench.ask(.surveyStart, "t").error?.contains("\"north field\" is going on") == true)
        // Again, with a restart in between: the records of the first database are still missing.
        bench.hear(1, -60)
        try bench.damage()
        try bench.restart()
        bench.stand(46.5, 6.8)
        for _ in 0..<2 { bench.hear(1, -70) }
        #expect(bench.ask(.surveyStop).survey.sightings == 2)
        let record = try bench.only()
        #expect(record.start == start.rfc3339)
        #expect(record.missingSightings == 4)
        #expect(record.beacons.map(\.count) == [2])
        #expect(record.track.fixes == 1)
        try bench.damage()
        #expect(bench.ask(.surveyList).survey.open == nil)
    }

    @Test func stopThatWasInterrupted_byDamage_isDoneByTheNextOne() throws {
        let bench = try Bench()
        bench.ask(.surveyStart, "s")
        bench.hear(1, -60)
        let end = try #require(try bench.queue.endSurvey().end).stamp.wall
        try bench.damage()
        bench.hear(1, -60)
        #expect(bench.ask(.surveyStop).survey.sightings == 0)
        let record = try bench.only()
        #expect(record.end == end.rfc3339)
        #expect(record.missingSightings == 1)
    }

    /// The server refused the second survey, and a person dropped it.
    @Test func surveyThatIsGone_hidesNoOther() throws {
        let bench = try Bench()
        for name in ["first", "second", "third"] {
            bench.ask(.surveyStart, name)
            bench.ask(.surveyStop)
        }
        let range = try #require(try bench.queue.flushed().pending(.surveys))
        try bench.queue.perform { writer in
            _ = try writer.freeze(range, through: 1)
            var rest = range
            rest.first = 2
            let batch = try #require(try writer.freeze(rest, through: 2))
            try writer.quarantine(batch, message: "no")
            let held = try #require(try writer.quarantined(number: batch.id))
            #expect(try writer.drop(held))
        }
        #expect(try bench.published().map(\.name) == ["first", "third"])
    }

    @Test func sightingsOfASurvey_areNotPurged_beforeItIsOver() throws {
        let bench = try Bench()
        bench.hear(1, -60)
        bench.ask(.surveyStart, "s")
        for _ in 0..<10 { bench.hear(1, -60) }
        let range = try #require(try bench.queue.flushed().pending(.beacons))
        try bench.queue.perform { writer in
            let batch = try #require(try writer.freeze(range, through: range.last))
            try writer.uploaded(batch)
        }
        bench.clock.advance(by: .seconds(3600))
        #expect(try bench.queue.perform { try $0.purge(retention: .seconds(60)) } == false)
        #expect(bench.ask(.surveyStop).survey.sightings == 10)
        #expect(try bench.queue.perform { try $0.purge(retention: .seconds(60)) } == true)
        #expect(try bench.only().missingSightings == nil)
    }

    @Test func wrongUse_isToldInWords() throws {
        let bench = try Bench()
        #expect(bench.ask(.surveyStop).error?.hasPrefix("no survey is going on") == true)
        for name in ["", " a", "a/b", "a\n", String(repeating: "a", count: 65), "\u{1B}[2J"] {
            let error = bench.ask(.surveyStart, name).error
            #expect(error?.contains("is not a valid survey name") == true)
        }
        #expect(bench.ask(.surveyStart, "Wald-3 süd").error == nil)
        #expect(
            bench.ask(.surveyStart, "b").error
                == "survey \"Wald-3 süd\" is going on: `waypost survey stop` ends it"
        )
    }

    @Test func screens_fitATerminal() throws {
        let bench = try Bench()
        bench.ask(.surveyStart, String(repeating: "ü", count: 32))
        for beacon in 0..<40 {
            for rssi in stride(from: -95, to: -40, by: 5) { bench.hear(beacon, rssi - beacon) }
        }
        bench.ask(.surveyStop)
        let record = try bench.only()
        let screen = SurveyScreen.show(record)
        let lines = screen.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 25)
        #expect(lines.allSatisfy { $0.count <= 80 })
        #expect(screen.contains("and 24 beacons heard less"))
        let list = SurveyScreen.list(bench.ask(.surveyList).survey, [record])
        #expect(list.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(SurveyScreen.picture(record.beacons[0]).contains("|"))
        // Beacons of one owner differ at the end of their ids.
        var twins = record
        twins.beacons[0].beaconId = "f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/7"
        #expect(SurveyScreen.show(twins).contains("f7826da6…c5b71e0893e/1/7 "))
    }
}
