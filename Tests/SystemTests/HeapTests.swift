import Foundation
import Support
import Testing

/// The daemons' threads share one heap: with one heap per thread, each grows to that thread's peak
/// within a month (`deploy/soak` shows it).
@Suite struct HeapTests {
    @Test func gatewaysThreads_shareOneHeap() throws {
        let device = try Device("[upload]\nrequired = false")
        try device.start()
        let daemon = try #require(try device.status()["daemon"] as? [String: Any])
        #expect(try Self.heaps(of: #require(daemon["pid"] as? Int)) == 0)
    }

    @Test func receiversThreads_shareOneHeap() throws {
        let device = try Device()
        _ = try device.startReceiver()
        let receiver = try #require(device.children.last)
        let tasks = "/proc/\(receiver.processIdentifier)/task"
        try waitUntil("its threads") {
            try FileManager.default.contentsOfDirectory(atPath: tasks).count > 16
        }
        #expect(try Self.heaps(of: Int(receiver.processIdentifier)) == 0)
    }

    /// Counts glibc's other heaps: 64 MiB at a multiple of that, with an unused end.
    private static func heaps(of pid: Int) throws -> Int {
        let size: UInt64 = 64 << 20
        var before: ClosedRange<UInt64>?
        var count = 0
        for line in try String(contentsOfFile: "/proc/\(pid)/maps", encoding: .utf8).split(
            separator: "\n"
        ) {
            let words = line.split(separator: " ")
            let ends = words[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard ends.count == 2, ends[0] < ends[1] else { continue }
            if let start = before, start.upperBound == ends[0], words[1] == "---p",
                start.lowerBound.isMultiple(of: size), ends[1] == start.lowerBound + size
            {
                count += 1
            }
            before = words[1] == "rw-p" && words.count == 5 ? ends[0]...ends[1] : nil
        }
        return count
    }
}
