// The keys of `[audio]`, and the combinations that are allowed.
package import Configuration
import Host
import Records

extension AudioSettings: Configurable {
    package static var keys: [Key<Self>] {
        Key("enabled", \.isEnabled, .boolean).remote(onlyOff: true).says("Record sound.")
        Key("device", \.devices, .devices)
            .says(
                "Sound device; of several, separated by commas, the first that can be opened."
            )
        Key("channel", \.channel, .channel)
            .says(
                "Of a device with several channels: the first that has a signal, or its number."
            )
        Key("rate", \.rate, .integer(8000...384_000, step: 50, unit: "Hz"))
            .says(
                "Sampling rate; opus and aac take only some (8000, 12000, 16000, 24000, 48000 both)."
            )
        Key("chunk", \.chunk, .duration(.seconds(1) ... .seconds(600)))
            .says(
                "Length of a record, a whole multiple of overlap (of 2s where that is 0s), at least two."
            )
        Key("overlap", \.overlap, .duration(.zero ... .seconds(60), step: .milliseconds(20)))
            .says("Sound that a record shares with the one before it.")
        Key(
            "codec",
            \.codec,
            .choice([("opus", .opus), ("flac", .flac), ("aac", .aac), ("wav", .wav)])
        )
        .says("How sound is encoded.")
        Key("bitrate", \.bitrate, .integer(6000...510_000, unit: "bits a second"))
            .remote().says(
                "Rate of opus (6000 to 510000) and aac (16000 to 160000, at most 6 times the sampling rate)."
            )
        Key("min_level_db", optional: \.minimumLevel, .number(-120...0, unit: "dBFS"), example: -60)
            .remote().says("Records quieter than this on average are counted and not kept.")
        Key("silence", \.silence, .choice())
            .says(
                "A microphone without a signal for 5 minutes: report it, or ok for one muted on purpose."
            )
    }

    package var violations: [Violation] {
        [wrongChunk, wrongRate, wrongBitrate, wrongOverlap].compactMap { $0 }
    }

    private var wrongChunk: Violation? {
        let step = overlap == .zero ? .seconds(2) : overlap
        let count = chunk.nanoseconds / step.nanoseconds
        guard count < 2 || chunk.nanoseconds % step.nanoseconds != 0 else { return nil }
        let reason = overlap == .zero ? "2s, which overlap 0s needs" : "overlap"
        return Violation(
            ["chunk", "overlap"],
            "a chunk of \(durationText(chunk)) is not two or more times "
                + (overlap == .zero ? "2s" : "the overlap of \(durationText(step))"),
            allowed: "a whole multiple of \(reason), at least \(durationText(step * 2))"
        )
    }

    /// Checks the sampling rate against the encoder's: RFC 6716, section 2; ISO/IEC 13818-7, table
    /// 35.
    private var wrongRate: Violation? {
        let rates: [Int]
        switch codec {
        case .opus: rates = [8000, 12_000, 16_000, 24_000, 48_000]
        case .aac:
            rates =
                [8000, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200]
                + [96_000]
        case .flac, .wav: return nil
        }
        guard !rates.contains(rate) else { return nil }
        return Violation(
            ["rate", "codec"],
            "\(codec) cannot encode \(rate) Hz",
            allowed: rates.map(String.init).joined(separator: ", ")
        )
    }

    private var wrongBitrate: Violation? {
        // libvo-aacenc would silently use another bitrate: its limits are 6 bits per sample and 160
        // kb/s.
        let allowed = 16_000...max(16_000, min(160_000, 6 * rate))
        guard codec == .aac, !allowed.contains(bitrate) else { return nil }
        return Violation(
            ["bitrate", "codec"],
            "aac at \(rate) Hz cannot have \(bitrate) bits per second",
            allowed: "\(allowed.lowerBound) to \(allowed.upperBound)"
        )
    }

    /// A segment of AAC has at least one frame.
    private var wrongOverlap: Violation? {
        let least = Duration.milliseconds((1024 * 1000 / rate + 19) / 20 * 20)
        guard codec == .aac, overlap > .zero, overlap < least else { return nil }
        return Violation(
            ["overlap", "codec"],
            "an overlap of \(durationText(overlap)) is less than a frame of aac",
            allowed: "0s, or \(durationText(least)) and more"
        )
    }
}

extension ValueFormat where Value == Int? {
    /// A channel of a sound card, counted from 1; nil is `"auto"`.
    fileprivate static let channel = ValueFormat(
        allowed: "\"auto\", or a whole number from 1 to 64",
        read: { literal in
            if literal.text == "auto" { return .success(nil) }
            return ValueFormat<Int>.integer(1...64).read(literal).map { $0 }
        },
        written: { $0.map { "\($0)" } ?? "\"auto\"" }
    )
}

extension ValueFormat where Value == [String] {
    /// Names of capture devices, separated by commas.
    fileprivate static let devices = ValueFormat.text(
        DeviceName.allowed,
        parse: { text in
            let names = pcmNames(text)
            if names.contains("") {
                return .failure(MismatchError("\"\(printable(text))\" holds an empty name"))
            }
            guard let wrong = names.first(where: { !DeviceName.isAllowed($0) }) else {
                return .success(names)
            }
            return .failure(MismatchError("\"\(printable(wrong))\" is not an allowed device name"))
        },
        written: { $0.joined(separator: ", ") }
    )
}

/// Splits a comma-separated list of names; a PCM's own arguments have commas, too.
///
/// After a name with a colon, a number or a part with `=` but no colon belongs to its arguments
/// (`hw:0,0`, `hw:CARD=Mic,DEV=0`), as does everything within `'…'` (`plug:'hw:0,0'`).
private func pcmNames(_ text: String) -> [String] {
    var names: [String] = []
    for part in splitAtCommas(text) {
        let isNumber = !part.isEmpty && part.utf8.allSatisfy(\.isDigit)
        let isArgument = isNumber || part.contains("=") && !part.contains(":")
        let hasOpenQuote = (names.last?.filter { $0 == "'" }.count ?? 0) % 2 == 1
        if let last = names.last, isArgument && last.contains(":") || hasOpenQuote {
            names[names.count - 1] = "\(last),\(part)"
        } else {
            names.append(part)
        }
    }
    return names
}
