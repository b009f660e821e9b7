// Gaps in sequence numbers: records lost by a server that was restored from an older copy.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerArchive

@Suite struct MissingRecordsTests {
    private func send(
        _ receiver: ReceiverProcess,
        _ numbers: ClosedRange<Int64>,
        device: String = "d1",
        key: String = UUID().uuidString
    ) throws -> Int {
        let records = numbers.map {
            #"{"id":"\#(device)-\#($0)","timestamp":"\#(RawRequest.time())"}"#
        }
        let body = Array(
            """
            {"stream_name":"places","device_id":"\(device)","data":[\(records.joined(separator: ","))],
            "batch_metadata":{"total_records":\(records.count),"first_sequence":\(numbers.lowerBound),
            "last_sequence":\(numbers.upperBound)}}
            """.utf8
        )
        return try receiver.request(RawRequest.head(key, length: body.count), body).status
    }

    @Test func restoredServer_namesDevicesWithNewerRecords() throws {
        let receiver = try ReceiverProcess()
        for device in ["d1", "d2"] {
            for first in [1, 11] as [Int64] {
                #expect(try send(receiver, first...first + 9, device: device) == 200)
            }
        }
        let copy = TemporaryFolder()
        #expect(try receiver.command("backup", copy.path).status == 0)
        #expect(try send(receiver, 21...30) == 200)
        #expect(receiver.terminate() == 0)
        try FileManager.default.removeItem(atPath: receiver.folder)
        #expect(try receiver.command("restore", copy.path).status == 0)
        try receiver.start()
        #expect(try send(receiver, 31...40) == 200)
        #expect(try send(receiver, 21...30, device: "d2") == 200)
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.page(with: "records are missing: 10 of places (21 to 30)")
        #expect(html.components(separatedBy: "records are missing").count == 2)
        #expect(html.contains("waypost resend --since 20"))
        #expect(html.contains("2 healthy"))
        // A backlog would have arrived by now.
        try receiver.sql("UPDATE streams SET changed=changed-7200000")
        #expect(try browser.get("/").body.contains("1 degraded"))
        #expect(try send(receiver, 21...25) == 200)
        #expect(try browser.get("/").body.contains("5 of places (26 to 30)"))
        #expect(try send(receiver, 26...30) == 200)
        #expect(try !browser.get("/").body.contains("records are missing"))
    }

    @Test(
        arguments: [
            ([1...10, 11...20], ""), ([5...10, 1...4], ""), ([1...10, 31...40], "11-30"),
            ([1...10, 31...40, 15...20], "11-14 21-30"), ([1...10, 31...40, 5...35], ""),
            ([1...10, 31...40, 11...30, 90...99], "41-89"), ([1...10, 12...12, 12...12], "11-11"),
        ] as [([ClosedRange<Int64>], String)]
    )
    func holes_followWhatCame(_ ranges: [ClosedRange<Int64>], _ expected: String) {
        var holes = SequenceHoles(next: ranges[0].lowerBound)
        for range in ranges { holes.record(range) }
        #expect(holes.text == expected)
        #expect(SequenceHoles(next: holes.next, text: holes.text) == holes)
    }

    @Test func numbersThatCannotBe_areNotBelieved() {
        #expect(SequenceHoles.range(from: 5, to: 4) == nil)
        #expect(SequenceHoles.range(from: -1, to: 4) == nil)
        #expect(SequenceHoles.range(from: 1, to: .max) == nil)
        #expect(SequenceHoles.range(from: nil, to: 4) == nil)
        var many = SequenceHoles(next: 0)
        for number in 0..<1000 as Range<Int64> { many.record(2 * number...2 * number) }
        #expect(many.holes.count == 50)
    }

    @Test func numbersOfAChangedDatabase_areNotBelieved() {
        let single = (0..<60).map { "\(4 * $0)-\(4 * $0)" }
        var holes = SequenceHoles(next: .min, text: single.joined(separator: " "))
        holes.record(1000...1000)
        #expect(holes.holes.count <= 50 && holes.next == 1001)
        let wide = Array(repeating: "0-1125899906842622", count: 9000)
        let sum = SequenceHoles(next: 0, text: wide.joined(separator: " ")).holes.reduce(0) {
            $0 + $1.count
        }
        #expect(sum == 1_125_899_906_842_623)
        #expect(SequenceHoles(next: 0, text: "8-9 3-4 12-13").holes == [8...9, 12...13])
    }
}
