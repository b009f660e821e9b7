// Fuzz targets for archived lines, which a person or another program may have changed.
import Foundation
import FuzzSupport
import Support

@testable import ServerBase
@testable import ServerExports
@testable import ServerIndex
@testable import ServerPages

enum RecordTargets {
    static let all = [FuzzTarget(name: "receiver-lines", run: lines)]

    /// Checks that a day's file gives pages, tracks, sound, points and intervals within bounds.
    private static func lines(_ input: [UInt8]) {
        let folder = TemporaryFolder()
        let path = folder.path + "/records.ndjson"
        do {
            try Data(input).write(to: URL(fileURLWithPath: path))
            guard let day = Day("2026-11-21"), let file = try LineFile.open(path) else {
                fatalError("no file")
            }
            var count: Int64 = 0
            try file.forEachLine(from: 0, to: Int64(input.count)) { line in
                count += 1
                if let line { check(line, count) }
            }
            precondition(count <= Int64(input.count))
            let sound = try AudioDay(path)
            precondition(sound.chunks.allSatisfy { $0.start <= $0.end })
            let track = try Track([(path, 0..<Int64(input.count), .min..<(.max))])
            precondition(track.thinned(to: 10).reduce(0) { $0 + $1.count } <= 16)
            _ = (track.gpx(name: "d1"), track.stay)
            let page = try RecordsPage(
                path,
                device: "d1",
                day: day,
                stream: "s",
                KnownNames(),
                sound: "sound",
                RecordsPage.Request([:])
            )
            _ = page?.html(now: day.end).bytes
        } catch {
            fatalError("\(error)")
        }
    }

    private static func check(_ line: RecordLine, _ number: Int64) {
        _ = FlatRecord(line).members
        _ = line.identity
        _ = line.event
        if let span = LossSpan(effort: line) { precondition(span.from <= span.to) }
        if let interval = EffortInterval(line) { precondition(interval.from < interval.to) }
        var record = InfluxRecord(line)
        if let point = record.point(stream: "s", device: "d", number: number) {
            precondition(!point.utf8.contains { $0 == 10 || $0 == 13 }, "two points in one")
        }
    }
}
