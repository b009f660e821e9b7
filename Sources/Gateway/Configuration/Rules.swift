// What must hold between keys that are right each for itself.
internal import Host
internal import Queue
internal import Streams

/// A rule over some keys: what is wrong and what is allowed, nil when it holds.
struct Rule: Sendable {
    /// The message stands at the first of them that the file or the environment sets.
    var keys: [String]
    var broken: @Sendable (Configuration) -> (message: String, allowed: String)?

    static let all =
        [encryption, bucketEncryption, bucket, scanning, chunk, codecRate, codecBitrate]
        + [codecOverlap, freeSpace] + streamNames

    private static let encryption = Rule(
        keys: ["upload.endpoint", "upload.allow_plaintext"]
    ) { configuration in
        guard isExposed(configuration.upload.endpoint, configuration) else { return nil }
        return ("http:// would show the token and the data to anyone on the way", encrypted)
    }

    private static let bucketEncryption = Rule(
        keys: ["upload.bucket_url", "upload.allow_plaintext"]
    ) { configuration in
        guard isExposed(configuration.upload.bucketURL, configuration) else { return nil }
        return ("http:// would show the data to anyone on the way", encrypted)
    }

    private static let encrypted =
        "https://, http:// to loopback, or any http:// with upload.allow_plaintext = true"

    private static func isExposed(_ url: String?, _ configuration: Configuration) -> Bool {
        guard let url, !configuration.upload.allowPlaintext,
            case .success(let endpoint) = Endpoint.parse(url)
        else { return false }
        return !endpoint.isEncrypted && !endpoint.isLoopback
    }

    private static let bucket = Rule(
        keys: ["upload.destination", "upload.bucket_url"]
    ) { configuration in
        let upload = configuration.upload
        guard upload.destination == .s3, upload.bucketURL == nil else { return nil }
        return ("s3 needs upload.bucket_url, which is not set", "ingest, or s3 with a bucket_url")
    }

    private static let scanning = Rule(
        keys: ["beacons.scan_window", "beacons.scan_interval"]
    ) { configuration in
        let (window, interval) = (
            configuration.beacons.scanWindow, configuration.beacons.scanInterval
        )
        guard window > interval else { return nil }
        return (
            "the window of \(durationText(window)) is longer than the interval of "
                + durationText(interval),
            "scan_window up to scan_interval"
        )
    }

    private static let chunk = Rule(keys: ["audio.chunk", "audio.overlap"]) { configuration in
        let audio = configuration.audio
        let step = audio.overlap == .zero ? .seconds(2) : audio.overlap
        let count = audio.chunk.nanoseconds / step.nanoseconds
        guard count < 2 || audio.chunk.nanoseconds % step.nanoseconds != 0 else { return nil }
        let reason = audio.overlap == .zero ? "2s, which overlap 0s needs" : "overlap"
        return (
            "a chunk of \(durationText(audio.chunk)) is not two or more times "
                + (audio.overlap == .zero ? "2s" : "the overlap of \(durationText(step))"),
            "a whole multiple of \(reason), at least \(durationText(step * 2))"
        )
    }

    /// Sampling rates that the encoders take: RFC 6716, section 2; ISO/IEC 13818-7, table 35.
    private static let codecRate = Rule(keys: ["audio.rate", "audio.codec"]) { configuration in
        let audio = configuration.audio
        let rates: [Int]
        switch audio.codec {
        case .opus: rates = [8000, 12_000, 16_000, 24_000, 48_000]
        case .aac:
            rates =
                [8000, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200]
                + [96_000]
        case .flac, .wav: return nil
        }
        guard !rates.contains(audio.rate) else { return nil }
        return (
            "\(audio.codec) cannot encode \(audio.rate) Hz",
            rates.map(String.init).joined(separator: ", ")
        )
    }

    private static let codecBitrate = Rule(
        keys: ["audio.bitrate", "audio.codec"]
    ) { configuration in
        let audio = configuration.audio
        // libvo-aacenc would quietly take another: 6 bits a sample and 160 kb/s are its limits.
        let allowed = 16_000...max(16_000, min(160_000, 6 * audio.rate))
        guard audio.codec == .aac, !allowed.contains(audio.bitrate) else { return nil }
        return (
            "aac at \(audio.rate) Hz cannot have \(audio.bitrate) bits a second",
            "\(allowed.lowerBound) to \(allowed.upperBound)"
        )
    }

    /// A segment of AAC has a frame at least.
    private static let codecOverlap = Rule(
        keys: ["audio.overlap", "audio.codec"]
    ) { configuration in
        let audio = configuration.audio
        let least = Duration.milliseconds((1024 * 1000 / audio.rate + 19) / 20 * 20)
        guard audio.codec == .aac, audio.overlap > .zero, audio.overlap < least else { return nil }
        return (
            "an overlap of \(durationText(audio.overlap)) is less than a frame of aac",
            "0s, or \(durationText(least)) and more"
        )
    }

    private static let freeSpace = Rule(
        keys: ["storage.critical_free", "storage.warn_free"]
    ) { configuration in
        let storage = configuration.storage
        guard storage.criticalFree > storage.warnFree else { return nil }
        return (
            "critical_free of \(sizeText(storage.criticalFree)) is more than warn_free of "
                + sizeText(storage.warnFree),
            "critical_free up to warn_free"
        )
    }

    private static let streams = StreamList().streams.map { stream in
        (key: "streams.\(stream)", name: { @Sendable in $0.streams[stream] } as NameOfStream)
    }

    private typealias NameOfStream = @Sendable (Configuration) -> String

    /// No two streams have one name.
    private static let streamNames = streams.indices.flatMap { later in
        streams[..<later].map { earlier in
            let (first, second) = (earlier, streams[later])
            return Rule(keys: [second.key, first.key]) { configuration in
                let name = first.name(configuration)
                guard name == second.name(configuration) else { return nil }
                return (
                    "\"\(name)\" is the name of \(first.key) and of \(second.key)",
                    "a name for each stream alone"
                )
            }
        }
    }
}
