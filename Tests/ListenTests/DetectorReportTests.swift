// A detector's faults as its user reads them: the first at once, then ever more rarely.
import Host
import Support
import Testing

@testable import Listen

@Suite struct DetectorReportTests {
    private static let minute: Int64 = 60_000_000_000
    private let messages = Locked<[String]>([])
    private let segment = AudioSegment(
        rate: 8000,
        start: AudioTime(nanoseconds: 0),
        boot: BootInstant(nanoseconds: 0),
        isSynced: true,
        device: "d",
        place: []
    )

    private func report() -> DetectorReport {
        let messages = messages
        return DetectorReport(interval: .seconds(60), now: BootInstant(nanoseconds: 0)) { text in
            messages.update { $0.append(text) }
        }
    }

    @Test func varyingReason_isReportedAtGrowingIntervals() {
        var report = report()
        for second in 0..<1800 {
            let now = BootInstant(nanoseconds: Int64(second) * 1_000_000_000)
            report.refused(segment, "offset_s \(second).5 is outside of the segment", at: now)
        }
        let lines = messages.value
        #expect(lines.count == 5)
        for (line, second) in zip(lines, [0, 60, 180, 420, 900]) {
            #expect(line.contains("offset_s \(second).5 "), "\(line)")
        }
    }

    @Test func otherReason_isReportedAtOnce_andRepetitionsInSums() {
        var report = report()
        let now = BootInstant(nanoseconds: 0)
        for status in 0..<10 { report.failed(segment, "exit status \(status)", at: now) }
        report.failed(segment, "it took too long and was ended", at: now)
        #expect(messages.value.count == 2)
        report.check(BootInstant(nanoseconds: Self.minute))
        #expect(messages.value.count == 3)
        #expect(messages.value.last?.contains(" 11 failed, ") ?? false, "\(messages.value)")
    }

    /// The reasons whose time is remembered are bounded.
    @Test func reasonsWithoutEnd_areNotAllReported() {
        var report = report()
        for number in 0..<1000 {
            let name = String(repeating: "x", count: number + 1)
            report.failed(segment, name, at: BootInstant(nanoseconds: 0))
        }
        #expect(messages.value.count == 16)
    }
}
