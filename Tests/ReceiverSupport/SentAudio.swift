// Audio as a gateway sends it.
package import Foundation
import Testing

/// Audio as a gateway sends it.
package enum SentAudio {
    /// Returns silence, or a tone, as WAV, 8 kHz, 16 bit.
    package static func wav(seconds: Double, tone: Double? = nil) -> Data {
        let bytes = UInt32(seconds * 8000) * 2
        var data = Data("RIFF".utf8)
        func append(_ number: UInt32, _ count: Int) {
            withUnsafeBytes(of: number.littleEndian) { data += $0.prefix(count) }
        }
        append(36 + bytes, 4)
        data += Data("WAVEfmt ".utf8)
        for (number, count) in [(16, 4), (1, 2), (1, 2), (8000, 4), (16_000, 4), (2, 2), (16, 2)] {
            append(UInt32(number), count)
        }
        data += Data("data".utf8)
        append(bytes, 4)
        guard let tone else { return data + Data(count: Int(bytes)) }
        for sample in 0..<Int(bytes / 2) {
            let value = Int16(20_000 * sin(2 * .pi * tone * Double(sample) / 8000))
            append(UInt32(UInt16(bitPattern: value)), 2)
        }
        return data
    }

    /// Sends chunks of the stream `sound`, each with its device and its second of the day.
    package static func send(
        _ receiver: ReceiverProcess,
        _ chunks: [(device: String, second: Int, length: Double)],
        on day: String,
        tone: Double? = nil
    ) throws {
        for chunk in chunks {
            func time(_ second: Double) -> String {
                let date = Date(timeIntervalSince1970: second)
                return "\(day)T\(date.formatted(.iso8601.time(includingFractionalSeconds: true)))Z"
            }
            let record = """
                {"id":"\(UUID().uuidString)","timestamp_start":"\(time(Double(chunk.second)))",
                "timestamp_end":"\(time(Double(chunk.second) + chunk.length))","duration":\(chunk.length),
                "audio_data":"\(wav(seconds: chunk.length, tone: tone).base64EncodedString())","audio_format":"wav",
                "sample_rate":8000,"average_db_level":-42.5}
                """
            let body = Array(
                """
                {"stream_name":"sound","device_id":"\(chunk.device)","data":[\(record)],
                "batch_metadata":{"total_records":1}}
                """.utf8
            )
            #expect(try receiver.request(RawRequest.head(length: body.count), body).status == 200)
        }
    }
}
