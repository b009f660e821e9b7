// Receivers that report and never say anything that can be used.
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

@Suite struct UselessReportsTests {
    /// A receiver that reports once a second, beside the health timer.
    private final class Source {
        let board = Publisher<SourceReport>()
        let sink = RecordingSink()
        let errors = Locked([String]())
        let clock = ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: 1_000_000_000_000),
                wall: WallTime(milliseconds: 1_796_119_200_000)
            )
        )
        private var session: LocationSession
        private let subscription: Subscription

        init() {
            let errors = errors
            session = LocationSession(
                settings: LocationSettings {
                    $0.gpsd = HostPort(host: "h", port: 1)
                    $0.interval = .seconds(1)
                },
                sink: sink,
                board: board
            )
            subscription = board.subscribe { state in
                guard case .error(let failure, _) = state else { return }
                errors.update { $0.append(failure.message) }
            }
            session.connected(clock.now())
        }

        /// nil: a line that cannot be read.
        func report(seconds: Int, _ position: (WallTime) -> GPSReport.Position?) {
            for _ in 0..<seconds {
                if let position = position(clock.wall()) {
                    session.receive(.position(position), from: "/dev/x", at: clock.stamp())
                } else {
                    session.drop(clock.now())
                }
                for _ in 0..<4 {
                    session.update(clock.now())
                    clock.advance(by: .milliseconds(250))
                }
                if (clock.now().milliseconds / 1000) % 15 == 0 {
                    _ = session.checkHealth(clock.now())
                }
            }
        }

        var reason: String? {
            if case .error(let failure, _) = board.state { failure.message } else { nil }
        }
    }

    private static func place(
        _ time: WallTime?,
        _ latitude: Double?,
        _ longitude: Double?,
        mode: Int = 3
    ) -> GPSReport.Position {
        var position = GPSReport.Position(mode: mode)
        (position.time, position.latitude, position.longitude) = (time, latitude, longitude)
        return position
    }

    struct Kind: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var reason: String
        var report: @Sendable (WallTime) -> GPSReport.Position?
    }

    static let kinds = [
        Kind(testDescription: "one report for ever", reason: "GNSS receiver's time is stuck at ") {
            _ in place(WallTime(milliseconds: 1_796_119_200_000), 52.1, 13.7)
        },
        Kind(
            testDescription: "null island",
            reason: "GNSS receiver reports latitude 0, longitude 0"
        ) {
            place($0, 0, 0)
        },
        Kind(
            testDescription: "no longitude",
            reason: "GNSS receiver sends no latitude or no longitude"
        ) {
            place($0, 47.8, nil)
        },
        Kind(testDescription: "cannot be read", reason: "its reports cannot be read") { _ in nil },
    ]

    @Test(arguments: kinds)
    func uselessSource_isAnErrorAfterAMinute_andNotEvidence(kind: Kind) {
        let source = Source()
        source.report(seconds: 58, kind.report)
        #expect(source.reason == nil)
        source.report(seconds: 30, kind.report)
        #expect(source.reason?.contains(kind.reason) == true, "\(source.reason ?? "no error")")
        // It stays so, and is not published each second.
        source.report(seconds: 180, kind.report)
        #expect(source.reason?.contains(kind.reason) == true)
        #expect(source.errors.value.count <= 5)
        #expect(Set(source.errors.value).count == 1)
        #expect((source.board.state.value?.dropped ?? 0) > 100)
        #expect(source.sink.times.isEmpty)
        source.report(seconds: 5) { Self.place($0, 52.2, 13.8) }
        #expect(source.reason == nil)
        #expect(source.board.state.value?.detail.hasPrefix("3D fix") == true)
    }

    /// A roof: that is no fault of the receiver's.
    @Test func receiverWithoutFix_isHealthy_evenAfterARejection() {
        let source = Source()
        source.report(seconds: 100, Self.kinds[1].report)
        #expect(source.reason != nil)
        source.report(seconds: 20) { Self.place($0, nil, nil, mode: 1) }
        #expect(source.reason == nil)
        #expect(source.board.state.value?.detail.hasPrefix("no fix") == true)
        source.report(seconds: 200) { Self.place($0, nil, nil, mode: 1) }
        #expect(source.reason == nil)
    }

    @Test func aRefusedFixNowAndThen_isNoError() {
        let source = Source()
        source.report(seconds: 200) {
            let second = $0.milliseconds / 1000
            return second % 10 == 0 ? Self.place($0, 52.1, 13.7) : Self.place($0, 0, 0)
        }
        #expect(source.errors.value.isEmpty)
    }

    /// At 20 m/s a position of a second later is 20 m away.
    @Test func timelessPositions_areDatedByTheirOwnReport() {
        let source = Source()
        let start = source.clock.wall()
        source.report(seconds: 40) {
            let seconds = Double($0.milliseconds - start.milliseconds) / 1000
            return Self.place(nil, 52 + seconds * 20 / 111_195, 13.7)
        }
        #expect(source.sink.fixes.count > 20)
        for fix in source.sink.fixes {
            let seconds = Double(fix.stamp.wall.milliseconds - start.milliseconds) / 1000
            #expect(abs((fix.latitude - 52) * 111_195 - seconds * 20) < 1)
        }
    }

    /// The receiver loses its time in between: the place of the next report must not go with the time before.
    @Test func placeOfALaterReport_doesNotMoveAFixThatHasOne() {
        let source = Source()
        source.report(seconds: 1) { Self.place($0, 52, 13.7) }
        source.report(seconds: 2) { _ in Self.place(nil, 52.001, 13.7) }
        #expect(source.sink.fixes.map(\.latitude) == [52])
    }
}
