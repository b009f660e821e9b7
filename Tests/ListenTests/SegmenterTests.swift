// Segments of the live recording: exact starts, and no gap inside.
import Host
import Support
import Testing

@testable import Listen

@Suite struct SegmenterTests {
    private static let start = "2026-11-21T04:30:07.000000Z"

    /// A piece whose sample number n is n, at 1000 samples per second, from `start` on.
    private func piece(
        _ frame: Int,
        _ count: Int,
        afterGap: Bool = false,
        rate: Int = 1000
    ) throws -> AudioPiece {
        let origin = try #require(AudioTime(rfc3339: Self.start))
        let time = origin + .milliseconds(Int64(frame))
        let header = try AudioHeader(
            line: Array(
                """
                {"run":1,"frame":\(frame),"rate":\(rate),"channels":1,"format":"S16_LE",\
                "bytes":\(count * 2),"timestamp":"\(time.rfc3339)","clock":"synced",\
                "boottime_ns":\(frame * 1_000_000),"lost":0,"device":"d"}
                """.utf8
            )
        )
        return AudioPiece(
            header: header,
            start: time,
            samples: (frame..<(frame + count)).map { Int16($0) },
            isAfterGap: afterGap
        )
    }

    @Test func segments_follow_withExactStarts_whateverThePieces() throws {
        for size in [1, 7, 250, 299, 300, 301, 1000, 3000] {
            var segmenter = Segmenter(length: .milliseconds(300))
            var segments: [AudioSegment] = []
            for frame in stride(from: 0, to: 3000, by: size) {
                let (new, left) = segmenter.receive(try piece(frame, min(size, 3000 - frame)))
                #expect(left == 0)
                segments += new
            }
            #expect(segments.count == 10)
            let origin = try #require(AudioTime(rfc3339: Self.start))
            for (number, segment) in segments.enumerated() {
                #expect(segment.samples == (number * 300..<number * 300 + 300).map { Int16($0) })
                #expect(segment.start == origin + .milliseconds(Int64(number) * 300))
                #expect(segment.boot.nanoseconds == Int64(number) * 300_000_000)
                #expect(segment.duration == .milliseconds(300))
            }
        }
    }

    @Test func gap_beginsAnew_andCountsWhatIsLeft() throws {
        var segmenter = Segmenter(length: .milliseconds(300))
        #expect(segmenter.receive(try piece(0, 200)).segments.isEmpty)
        let (segments, left) = segmenter.receive(try piece(1000, 300, afterGap: true))
        #expect(left == 200)
        #expect(segments.map(\.samples.first) == [1000])
        #expect(segmenter.receive(try piece(1300, 100)).left == 0)
        #expect(segmenter.receive(try piece(1400, 100, rate: 2000)).left == 100)
    }
}

@Suite struct DetectionLineTests {
    private static let segment = AudioSegment(
        rate: 1000,
        start: AudioTime(nanoseconds: 1_795_235_407_000_400_000),
        boot: BootInstant(nanoseconds: 5_000_000_000),
        isSynced: true,
        device: "d",
        place: [],
        samples: [Int16](repeating: 0, count: 3000)
    )

    private func request(_ line: String, isSynced: Bool = true) throws -> String {
        var segment = Self.segment
        segment.isSynced = isSynced
        let bytes = try DetectionLine.request(Array(line.utf8), stream: "birds", of: segment)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func record_isDatedByItsOffset_toTheMillisecond() throws {
        let text = try request(#"{"species":"Parus major","offset_s":1.2344}"#)
        #expect(
            text == """
                {"stream":"birds","data":{"species":"Parus major","offset_s":1.2344},\
                "timestamp":"2026-11-21T04:30:08.235Z"}

                """
        )
        #expect(try request("{\"n\":1}").contains("04:30:07.000Z"))
        #expect(try request("{\"offset_s\":3}").contains("04:30:10.000Z"))
    }

    /// A clock that is wrong now would misdate it for ever.
    @Test func unsyncedClock_isNotUsed() throws {
        let text = try request("{\"offset_s\":1.5}", isSynced: false)
        #expect(
            text
                == "{\"stream\":\"birds\",\"data\":{\"offset_s\":1.5},\"boottime_ns\":6500000000}\n"
        )
    }

    @Test(arguments: [
        ("{\"offset_s\":-0.001}", "outside of the segment"),
        ("{\"offset_s\":3.001}", "outside of the segment"),
        ("{\"offset_s\":1e300}", "outside of the segment"),
        ("{\"offset_s\":\"1\"}", "not a number"),
        ("{\"offset_s\":1,\"offset_s\":2}", "offset_s"),
        ("{\"timestamp\":\"2026-11-21T04:30:07Z\"}", "reserved"),
        ("[1]", "JSON object"), ("bird", "JSON object"), ("{\"a\":1}}", "byte"),
        ("{\"a\":\"\u{1}\"}", "byte"),
    ])
    func badLine_isRefused_withItsReason(_ line: (text: String, reason: String)) {
        do {
            _ = try request(line.text)
            Issue.record("accepted: \(line.text)")
        } catch {
            #expect("\(error)".contains(line.reason), "\(error)")
        }
    }
}
