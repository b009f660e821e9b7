// When silence is trouble, and what `status` says: the session alone.
import Configuration
import Foundation
import Host
import Queue
import Records
import StatusBoard
import SourceSupport
import Support
import Testing

@testable import Location

@Suite struct LocationSessionTests {
    private final class Source {
        let board = Publisher<SourceReport>()
        let clock = ManualClock(
            testStart
        )
        let sink = RecordingSink()
        var session: LocationSession

        init() {
            session = LocationSession(
                settings: LocationSettings {
                    $0.gpsd = HostPort(host: "h", port: 1)
                    $0.interval = .seconds(1)
                },
                sink: sink,
                board: board
            )
            session.connected(clock.now())
        }

        func report(mode: Int = 3, date: String? = nil) {
            var position = GPSReport.Position(mode: mode)
            position.time = date.flatMap { WallTime(rfc3339: $0) } ?? clock.wall()
            position.latitude = 46.5
            position.longitude = 6.8
            session.receive(.position(position), from: "/dev/x", at: clock.stamp())
            session.update(clock.now())
        }

        func after(_ seconds: Int) -> LocationSession.Remedy {
            clock.advance(by: .seconds(seconds))
            return session.checkHealth(clock.now())
        }

        var reported: String {
            switch board.state {
            case .unknown: "unknown"
            case .loading: "loading"
            case .loaded(let report): report.detail
            case .error(let failure, _): "error: " + failure.message
            }
        }
    }

    @Test func silence_isAFaultAfter30Seconds() {
        let source = Source()
        source.report()
        #expect(source.reported == "3D fix")
        #expect(source.after(29) == .none)
        #expect(source.reported == "3D fix")
        #expect(source.after(1) == .reconnect)
        #expect(
            source.reported.hasPrefix("error: gpsd at h:1: silent for 30 s; is a GNSS receiver")
        )
        source.session.connected(source.clock.now())
        // A connection alone says nothing.
        #expect(source.reported.hasPrefix("error: gpsd at h:1: silent"))
        source.report()
        #expect(source.reported == "3D fix")
    }

    @Test func missingPosition_isRequested_thenGPSDIsReconnected() {
        let source = Source()
        source.report()
        var remedies: [LocationSession.Remedy] = []
        for _ in 0..<13 {
            remedies.append(source.after(10))
            source.session.receive(.sky(used: 0), from: "", at: source.clock.stamp())
        }
        #expect(remedies.prefix(5).allSatisfy { $0 == .none })
        #expect(remedies[5] == .ask)
        #expect(remedies[6..<11].allSatisfy { $0 == .none })
        #expect(remedies[11] == .reconnect)
        #expect(source.reported.hasPrefix("error: gpsd at h:1: no position for"))
    }

    @Test func noFix_isNoError() {
        let source = Source()
        source.report(mode: 1)
        #expect(source.reported == "no fix")
        #expect(source.sink.fixes.isEmpty)
        source.report(mode: 0)
        #expect(source.reported == "no fix")
    }

    @Test func wrongDate_isReported_andFixesAreDatedByArrival() {
        let source = Source()
        var heard: [WallTime] = []
        for second in 0..<20 {
            source.report(date: "1999-08-22T00:00:\(second + 10).000Z")
            heard.append(source.clock.stamp().wall)
            source.clock.advance(by: .seconds(1))
            #expect(
                source.reported == "3D fix; its date 1999-08-22 is before this release, not used"
            )
        }
        for _ in 0..<3 {
            source.report()
            source.clock.advance(by: .seconds(1))
        }
        #expect(source.reported == "3D fix")
        // The last one may still grow.
        #expect(source.sink.fixes.count == 22)
        #expect(source.sink.fixes.prefix(20).map(\.stamp.wall) == heard)
        #expect(source.board.state.value?.dropped == 0)
    }

    @Test func receivers_areFollowedByName() {
        let source = Source()
        func receive(_ line: String) {
            guard let report = GPSDLine.receivers(Array(line.utf8)) else { return }
            source.session.receive(report, from: "", at: source.clock.stamp())
        }
        receive(#"{"class":"DEVICES","devices":[]}"#)
        #expect(source.reported.hasPrefix("error: gpsd at h:1 has no GNSS receiver: plug one in"))
        #expect(source.after(31) == .reconnect)
        #expect(source.reported.contains("has no GNSS receiver"))
        receive(#"{"class":"DEVICE","path":"/dev/a","activated":"2026-11-21T13:26:16.470Z"}"#)
        #expect(source.reported == "GNSS receiver found, no report yet")
        receive(#"{"class":"DEVICE","path":"/dev/b","activated":0}"#)
        #expect(source.reported == "GNSS receiver found, no report yet")
        receive(#"{"class":"DEVICE","path":"/dev/a","activated":0}"#)
        #expect(source.reported.contains("has lost the GNSS receiver /dev/a: plug it in again"))
        receive(#"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/c"}"#)
        #expect(source.reported.contains("has lost"))
    }

    /// gpsd names a caster of corrections with its password; status and events show what the source says.
    @Test func passwordOfACaster_isNotSaid() {
        let source = Source()
        let path = "ntrip://anna:se@cret@caster.example:2101/M"
        let opened = #""activated":"2026-11-21T13:26:16.470Z""#
        var said: [String] = []
        for line in [
            #"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"\#(path)",\#(opened)}]}"#,
            #"{"class":"DEVICE","path":"\#(path)","activated":0}"#,
            #"{"class":"DEVICE","path":"\#(path)",\#(opened)}"#,
        ] {
            guard let report = GPSDLine.receivers(Array(line.utf8)) else { continue }
            source.session.receive(report, from: "", at: source.clock.stamp())
            said.append("\(source.board.state.value?.device ?? "") \(source.reported)")
        }
        #expect(said.count == 3)
        #expect(said.allSatisfy { $0.contains("ntrip://…@caster.example:2101/M") }, "\(said)")
        #expect(said.allSatisfy { !$0.contains("anna") && !$0.contains("cret") }, "\(said)")
    }

    /// gpsd has opened it again, and it says nothing yet: to plug it in again would not help.
    @Test func lostReceiver_thatGpsdHasAgain_isNotSaidToBeLost() {
        let source = Source()
        func receive(_ line: String) {
            guard let report = GPSDLine.receivers(Array(line.utf8)) else { return }
            source.session.receive(report, from: "", at: source.clock.stamp())
        }
        source.report()
        receive(#"{"class":"DEVICE","path":"/dev/x","activated":0}"#)
        #expect(source.reported.contains("has lost the GNSS receiver /dev/x"))
        // As it answers a client that asks again: not open, and then open.
        receive(
            #"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/x","activated":0}]}"#
        )
        #expect(source.reported.contains("has lost the GNSS receiver /dev/x"))
        let opened = #""activated":"2026-11-21T13:26:16.470Z""#
        receive(#"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/x",\#(opened)}]}"#)
        #expect(source.reported == "GNSS receiver found, no report yet")
    }

    /// gpsd was given a path where nothing is plugged in.
    @Test func receiverThatNeverWas_isNotSaidToBeLost() {
        let source = Source()
        for line in [
            #"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/ttyACM0"}]}"#,
            #"{"class":"DEVICE","path":"/dev/ttyACM0","activated":0}"#,
        ] {
            guard let report = GPSDLine.receivers(Array(line.utf8)) else { continue }
            source.session.receive(report, from: "", at: source.clock.stamp())
        }
        #expect(
            source.reported.contains(
                "cannot open the GNSS receiver /dev/ttyACM0: is it plugged in?"
            )
        )
    }

    /// A plug that shook is back before gpsd can open the receiver, and gpsd says nothing more of it.
    @Test func lostReceiver_isAskedFor_fiveTimes() {
        let source = Source()
        func receive(_ line: String) {
            guard let report = GPSDLine.receivers(Array(line.utf8)) else { return }
            source.session.receive(report, from: "", at: source.clock.stamp())
        }
        for _ in 0..<2 {
            source.report()
            receive(#"{"class":"DEVICE","path":"/dev/x","activated":0}"#)
            var asked: [Int] = []
            for second in 1...100 {
                source.clock.advance(by: .seconds(1))
                source.session.update(source.clock.now())
                if source.session.takeWish() { asked.append(second) }
            }
            #expect(asked == [1, 3, 7, 15, 31])
            #expect(source.session.delay(source.clock.now()) == nil)
        }
    }
}
