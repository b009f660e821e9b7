// The parts of the location source that need no gpsd: lines, epochs, limits.
import Foundation
import Host
import Queue
import Records
import Support
import Testing

@testable import Location

@Suite struct LocationValueTests {
    private static let start = testStart

    private func position(_ seconds: Int64?, mode: Int = 3) -> GPSReport.Position {
        var position = GPSReport.Position(mode: mode)
        position.time = seconds.map { WallTime(milliseconds: 1_795_235_407_000 + $0 * 1000) }
        position.latitude = 46.5
        position.longitude = 6.8
        return position
    }

    @Test(arguments: [1, 2, 3, 7, 100])
    func lines_comeOutWhole_howeverTheyArrive(piece: Int) {
        var buffer = LineBuffer()
        var lines: [String] = []
        let bytes = Array("{\"a\":1}\r\n\r\n{\"b\":2}\nrest".utf8)
        for start in stride(from: 0, to: bytes.count, by: piece) {
            buffer.append(bytes[start..<min(bytes.count, start + piece)])
            while let line = buffer.next(limit: GPSDLine.limit) {
                lines.append(String(decoding: GPSDLine.text(line) ?? [], as: UTF8.self))
            }
        }
        #expect(lines == ["{\"a\":1}", "", "{\"b\":2}"])
    }

    @Test func overlongLine_isPassedOverToItsEnd_andCounted() {
        var buffer = LineBuffer()
        var lines: [Int?] = []
        buffer.append([UInt8](repeating: 65, count: 50_000) + [10] + [66, 10])
        while let line = buffer.next(limit: GPSDLine.limit) {
            lines.append(GPSDLine.text(line)?.count)
        }
        #expect(lines == [nil, 1])
    }

    /// libgps 3.22 reads such a line for ever when there is a fault before the second class.
    @Test func lineWithMoreThanOneClass_isLeftToNobody() {
        let lines: [(String, Bool)] = [
            (#"{"class":"TPV","mode":3}"#, true),
            (#"{"class":"TPV","device":"a class: none"}"#, true),
            (#"{"class":"TPV","lat":1,9lon":7,"{"class":"TPV","mode":1}"#, false),
            (#"{"class":"TPV"}{"class":"TPV"}"#, false), (#"{"class":"TPV","mode":3"#, false),
            ("{\"class\":\"TPV\",\"a\":\"\0\"}", false),
        ]
        for (line, isWanted) in lines {
            #expect(GPSDLine.isReadable(Array(line.utf8)) == isWanted, "\(line)")
        }
    }

    @Test func partialReportsOfOneTime_areOneFix() {
        var merger = EpochMerger()
        var first = position(0)
        first.speed = 1.5
        var second = position(0)
        second.altitude = 377
        #expect(merger.add(first, at: Self.start)?.fix == nil)
        #expect(merger.add(second, at: Self.start.advanced(by: .milliseconds(100)))?.fix == nil)
        let fix = merger.add(position(1), at: Self.start.advanced(by: .seconds(1)))?.fix
        #expect(fix?.speed == 1.5)
        #expect(fix?.altitude == 377)
        #expect(fix?.course == nil)
        #expect(fix?.stamp == Self.start)
    }

    @Test func epoch_isOverAfterAWhile_withoutAnotherReport() {
        var merger = EpochMerger()
        _ = merger.add(position(0), at: Self.start)
        #expect(merger.flush(now: Self.start.boot + .milliseconds(1499)) == nil)
        #expect(merger.flush(now: Self.start.boot + .milliseconds(1500)) != nil)
        #expect(merger.flush(now: Self.start.boot + .seconds(9)) == nil)
    }

    @Test func lateReportWithoutATime_beginsNoFixOfItsOwn() {
        var merger = EpochMerger()
        _ = merger.add(position(0), at: Self.start)
        #expect(merger.flush(now: Self.start.boot + .seconds(2)) != nil)
        _ = merger.add(position(nil), at: Self.start.advanced(by: .seconds(2)))
        #expect(merger.flush(now: Self.start.boot + .seconds(9)) == nil)
    }

    @Test func receiverThatNeverGivesATime_isKept_onceThatIsKnown() {
        var merger = EpochMerger()
        let fixes = (0...15).compactMap {
            (merger.add(position(nil), at: Self.start.advanced(by: .seconds($0)))
                ?? merger.flush(now: Self.start.boot + .seconds($0)))?.fix
        }
        #expect(fixes.first?.stamp == Self.start.advanced(by: .seconds(10)))
        #expect(!fixes.isEmpty)
    }

    /// A rollover that gpsd cannot make sense of: positions go on, times do not.
    @Test func timelessFixes_areKept_onceTimeIsKnownMissing() {
        var merger = EpochMerger()
        let fixes = (0..<60).compactMap { second -> Fix? in
            let time = second < 5 ? Int64(second) : nil
            return
                (merger.add(position(time), at: Self.start.advanced(by: .seconds(second)))
                ?? merger.flush(now: Self.start.boot + .seconds(second)))?.fix
        }
        let timeless = fixes.filter { $0.receiverTime == nil }
        #expect(timeless.first?.stamp == Self.start.advanced(by: .seconds(17)))
        #expect(timeless.count > 10)
    }

    /// No sky for a minute, and then a report that comes before the time of its epoch.
    @Test func receiverThatHadNoFix_beginsWithAWholeOne() {
        var merger = EpochMerger()
        _ = merger.add(position(0), at: Self.start)
        for second in 1..<60 {
            let now = Self.start.advanced(by: .seconds(second))
            _ = merger.add(position(nil, mode: 1), at: now)
            _ = merger.flush(now: now.boot)
        }
        let back = Self.start.advanced(by: .seconds(60))
        #expect(merger.add(position(nil), at: back) == nil)
        #expect(merger.add(position(60), at: back.advanced(by: .milliseconds(100))) == nil)
        let fix = merger.flush(now: back.boot + .seconds(2))?.fix
        #expect(fix?.receiverTime != nil)
    }

    @Test func reportsWithoutAFix_orWithoutAPlace_areNoFixes() {
        for mode in [0, 1] {
            var merger = EpochMerger()
            _ = merger.add(position(0, mode: mode), at: Self.start)
            #expect(merger.flush(now: Self.start.boot + .seconds(2))?.fix == nil)
        }
        var merger = EpochMerger()
        var nowhere = position(0)
        nowhere.latitude = nil
        _ = merger.add(nowhere, at: Self.start)
        #expect(merger.flush(now: Self.start.boot + .seconds(2))?.fix == nil)
    }

    @Test func limit_keepsOneFixPerIntervalAndDistance() {
        func fix(_ seconds: Int, _ longitude: Double) -> Fix {
            Fix(
                stamp: Self.start.advanced(by: .seconds(seconds)),
                mode: .threeDimensional,
                latitude: 0,
                longitude: longitude
            )
        }
        var byTime = FixLimit(interval: .seconds(10), minDistance: 0)
        let kept = (0...30).filter { byTime.admits(fix($0, 0)) }
        #expect(kept == [0, 10, 20, 30])
        var byDistance = FixLimit(interval: .seconds(1), minDistance: 100)
        // A degree at the equator is 111,195 m: 0.001 of it is 111 m, 0.0005 are 56 m.
        let moved = [fix(0, 0), fix(10, 0.0005), fix(20, 0.001)].map { byDistance.admits($0) }
        #expect(moved == [true, false, true])
        #expect(abs(fix(0, 0).metres(to: fix(0, 1)) - 111_195) < 1)
    }
}
