// A microphone that plays a known signal in real time, through the tests' plug-in of libasound.
import Foundation
import Support
import Testing

extension Device {
    /// Makes the capture device `mic`: 16 kHz, and sample n since it was opened is n modulo 65536.
    ///
    /// The signal jumps from 32767 to -32768 once in 65536 samples: a marker at a known sample.
    func useRampMicrophone() throws {
        let settings = "rates \"16000\""
        try write(soundPlugin(in: folder, device: "mic", settings), "asound.conf")
        environment["ALSA_CONFIG_PATH"] = folder + "/asound.conf"
    }

    /// The stored chunks, in order: when each begins in milliseconds since 1970, and its samples.
    ///
    /// The codec must be `wav`, and the server the one of `startReceiver`.
    func storedChunks() throws -> [(start: Double, samples: [Int16])] {
        try arrived("linux_alsa_audio").map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            let record = try #require(object)
            let start = try #require(record["timestamp_start"] as? String)
            let name = try #require(record["audio_file"] as? String)
            let names = FileManager.default.enumerator(atPath: folder + "/data/audio")
            let file = try #require(names?.first { "\($0)".hasSuffix(name) })
            let data = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/data/audio/\(file)"))
            let samples = data.dropFirst(44).withUnsafeBytes { bytes in
                stride(from: 0, to: bytes.count - 1, by: 2).map {
                    Int16(littleEndian: bytes.loadUnaligned(fromByteOffset: $0, as: Int16.self))
                }
            }
            return (try milliseconds(start), samples)
        }.sorted { $0.start < $1.start }
    }
}

/// Parses an RFC 3339 time in UTC, to milliseconds since 1970.
func milliseconds(_ text: String) throws -> Double {
    let form = ISO8601DateFormatter()
    form.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
    return (try #require(form.date(from: text)).timeIntervalSince1970 * 1000).rounded()
}
