// Base64 in pieces, compared with Foundation's.
import Foundation
import HTTP
import Testing

@Suite struct Base64EncoderTests {
    @Test func piecesOfAnyLength_makeOneText() {
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 3) }
        for length in [0, 1, 2, 3, 4, 999, 1000] {
            for step in [1, 2, 3, 5, 64, 1000] {
                var (encoder, text) = (Base64Encoder(), Array("\"".utf8))
                for start in stride(from: 0, to: length, by: step) {
                    encoder.encode(Array(bytes[start..<min(length, start + step)]), into: &text)
                }
                encoder.finish(into: &text)
                let whole = Data(bytes.prefix(length)).base64EncodedString()
                #expect(String(decoding: text, as: UTF8.self) == "\"" + whole, "\(length), \(step)")
            }
        }
    }
}
