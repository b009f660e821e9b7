// Reports of the time between two runs: a planned stop is not a loss, a failure is.
import Host
import Records
import SourceSupport
import Testing

@testable import Audio

@Suite struct RunEndTests {
    private static let zero = Stamp(
        boot: BootInstant(nanoseconds: 1_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_235_407_000)
    )

    private static func at(_ seconds: Int) -> Stamp { zero.advanced(by: .seconds(seconds)) }

    /// The end of the run before; `opens`: the window before was closed, and this one opens then.
    private func end(_ end: Int?, stopped: Int? = nil, opens: Int? = nil) -> RunEnd? {
        let sink = RecordingSink(endOfAudio: end.map(Self.at), stoppedAt: stopped.map(Self.at))
        sink.window.opens = opens.map { Self.at($0).boot }
        return RunEnd(before: sink, at: Self.at(50))
    }

    /// Describes each event: whether it is a pause or a loss, and its span in seconds.
    private func reported(_ end: RunEnd?, start: Int, opens: Int? = nil) -> [String] {
        let opens = opens.map { Self.at($0).boot }
        let settings = AudioSettings()
        let events = end?.events(to: Self.at(start), device: "mic", settings, opens: opens) ?? []
        return events.map { event in
            #expect(event.kind == .gap)
            #expect(event.source == "audio")
            let isOff = event.detail.contains { $0.key == "state" && $0.value == .text("off") }
            #expect(isOff == (event.loss == nil))
            #expect(isOff != event.detail.contains { $0.key == "lost_s" })
            let times = ["from", "to"].map { key -> Int64 in
                guard case .time(let time)? = event.detail.first(where: { $0.key == key })?.value
                else { return -1 }
                return (time.milliseconds - Self.zero.wall.milliseconds) / 1000
            }
            return "\(isOff ? "off" : "lost") \(times[0])..\(times[1])"
        }
    }

    @Test func firstStart_reportsNothing() {
        #expect(end(nil, stopped: 5) == nil)
    }

    @Test func crash_isALoss() {
        #expect(reported(end(0), start: 60) == ["lost 0..60"])
    }

    @Test(arguments: [0, 2]) func plannedStop_isOff(stopped: Int) {
        #expect(reported(end(0, stopped: stopped), start: 60) == ["off 0..60"])
    }

    /// The microphone was unplugged for a while before somebody restarted the source.
    @Test func plannedStopOfAFailingSource_isALossUntilThen() {
        let end = self.end(0, stopped: 30)
        #expect(reported(end, start: 60) == ["lost 0..30", "off 30..60"])
    }

    @Test func sourceThatCannotStart_losesFromItsFirstFailureOn() {
        var end = self.end(0, stopped: 1)
        end?.fails(at: Self.at(10), "mic: gone")
        end?.fails(at: Self.at(20), "mic: still gone")
        #expect(reported(end, start: 60) == ["off 0..10", "lost 10..60"])
        let loss = end?.events(to: Self.at(60), device: "mic", AudioSettings()).last
        #expect(
            loss?.detail.contains { $0.key == "reason" && $0.value == .text("mic: gone") } == true
        )
    }

    @Test func closedWindow_reportsNothing() {
        #expect(reported(end(nil, opens: 60), start: 60, opens: 60) == [])
        // Opened by a reload or a start, in the middle of a window.
        #expect(end(nil) == nil)
    }

    @Test func lateDevice_losesAudioFromWindowStart() {
        #expect(reported(end(nil, opens: 60), start: 63, opens: 60) == ["lost 60..63"])
        var end = self.end(nil, opens: 60)
        // It was opened before the window.
        end?.fails(at: Self.at(58), "mic: gone")
        #expect(reported(end, start: 70, opens: 60) == ["lost 60..70"])
        #expect(end?.reason == "mic: gone")
        #expect(reported(end, start: 60, opens: 60) == [])
    }

    @Test func plannedStop_beforeAWindow_losesNothingUntilItOpens() {
        var end = self.end(0, stopped: 1, opens: 60)
        end?.fails(at: Self.at(58), "mic: gone")
        #expect(reported(end, start: 70, opens: 60) == ["off 0..58", "lost 60..70"])
    }

    /// Nothing is missing before the window, whatever ended the run before.
    @Test func gapOfAWindow_beginsWithIt() {
        #expect(
            reported(RunEnd(stamp: Self.at(58), reason: "mic: gone"), start: 70, opens: 60) == [
                "lost 60..70"
            ]
        )
        #expect(
            reported(RunEnd(stamp: Self.at(65), reason: "mic: gone"), start: 70, opens: 60) == [
                "lost 65..70"
            ]
        )
        #expect(
            reported(RunEnd(stamp: Self.at(58), reason: "mic: gone"), start: 60, opens: 60) == []
        )
    }

    @Test func faultWithoutAPlannedStop_keepsItsReason() {
        var end = RunEnd(stamp: Self.at(0), reason: "mic: overrun")
        end.fails(at: Self.at(5), "mic: gone")
        let events = end.events(to: Self.at(9), device: "mic", AudioSettings())
        let reasons = events.flatMap(\.detail).filter { $0.key == "reason" }.map(\.value)
        #expect(reasons == [.text("mic: overrun")])
    }
}
