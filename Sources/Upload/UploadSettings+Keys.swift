// The keys of `[upload]` and the rules between them.
package import Configuration
import Host
import HTTP

extension UploadSettings: Configurable {
    package static var keys: [Key<Self>] {
        Key("required", \.isRequired, .boolean)
            .says("Collect nothing before the server has accepted this device once.")
        Key("destination", \.destination, .choice())
            .says("What takes the data: an ingest server, or a bucket of an S3-compatible store.")
        Key("endpoint", optional: \.endpoint, .url, example: "https://example.org/api/ingest")
            .says("Where to upload; http:// only to loopback unless allow_plaintext is true.")
        Key("allow_plaintext", \.allowsPlaintext, .boolean)
            .says("Permit an http:// endpoint: token and data are then readable on the way.")
        Key("token_file", optional: \.tokenFile, .path(), example: "/etc/waypost/token")
            .says(
                "File of mode 0600 with the device token; without it the systemd credential waypost.token."
            )
            .onCard("take the line out, and write the token in waypost.token beside it")
        bucketKeys
        Key("ca_file", optional: \.caFile, .path(), example: "/etc/waypost/ca.pem")
            .says("Extra certificate authorities to trust, in PEM.")
            .onCard(
                "take the line out, and add the authority on the device: update-ca-certificates(8)"
            )
        Key("pinned_public_key", optional: \.pinnedPublicKey, .publicKeyPin, example: examplePin)
            .says("Accept only a server with this public key.")
        Key("interval", \.interval, .duration(.milliseconds(100) ... .days(7)))
            .remote().says("Time from one upload to the next.")
        Key("timeout", \.timeout, .duration(.seconds(1) ... .seconds(3600)))
            .says("A request without progress for this long is ended.")
        Key("max_batch_bytes", \.maxBatchBytes, .size(1000...1_000_000_000))
            .remote().says(
                "Largest request body before compression; a single larger record still goes alone."
            )
        Key("compression", \.compression, .choice()).says("How request bodies are compressed.")
        Key("format", \.format, .choice())
            .says("Form of records: columns if the server takes them, or always rows.")
        Key("max_rate", optional: \.maxRate, .size(1000...10_000_000_000), example: 100_000)
            .remote().says("Most bytes to send per second.")
        Key(
            "daily_budget",
            optional: \.dailyBudget,
            .size(100_000...1_000_000_000_000),
            example: 20_000_000
        )
        .remote().says(
            "Most bytes to send and receive per day (UTC); audio gets what the others leave."
        )
        Key("quiet", optional: \.quiet, .quietHours, example: QuietHours.example)
            .remote().says(
                "Hours of each day without uploads; `waypost sync` does not wait for their end."
            )
        Key("max_attempts", \.maxAttempts, .integer(1...100))
            .says(
                "Refusals of a record sent alone, one per sync, before quarantine; outages do not count."
            )
        Key(
            "heartbeat_url",
            optional: \.heartbeatURL,
            .url,
            example: "https://example.org/ping/waypost"
        )
        .says("Fetched after an upload that left nothing, at most once a minute: a heartbeat.")
    }

    @KeyBuilder<Self> private static var bucketKeys: [Key<Self>] {
        Key("bucket_url", optional: \.bucketURL, .bucket, example: "https://s3.example.org/bucket")
            .says("Bucket for destination s3; http:// only as for endpoint.")
        Key("region", \.region, .name("region"))
            .says("Region of the bucket, as its store calls it.")
        Key("credentials_file", optional: \.credentialsFile, .path(), example: "/etc/waypost/s3")
            .says(
                "File of mode 0600 with ID:SECRET or an AWS profile; else the credential waypost.s3."
            )
            .onCard("take the line out, and write the keys in waypost.s3 beside it")
    }

    private static let examplePin = "sha256//\(String(repeating: "A", count: 43))="

    package var violations: [Violation] {
        let needsBucket = Violation(
            ["destination", "bucket_url"],
            "s3 needs upload.bucket_url, which is not set",
            allowed: "ingest, or s3 with a bucket_url"
        )
        let exposed = [
            exposed(endpoint, "endpoint", "the token and the data"),
            exposed(bucketURL, "bucket_url", "the data"),
        ]
        return exposed.compactMap { $0 }
            + (destination == .s3 && bucketURL == nil ? [needsBucket] : [])
    }

    private func exposed(_ url: String?, _ key: String, _ what: String) -> Violation? {
        guard let url, !allowsPlaintext, case .success(let endpoint) = Endpoint.parse(url),
            !endpoint.isEncrypted, !endpoint.isLoopback
        else { return nil }
        return Violation(
            [key, "allow_plaintext"],
            "http:// would show \(what) to anyone on the way",
            allowed:
                "https://, http:// to loopback, or any http:// with upload.allow_plaintext = true"
        )
    }
}

extension ValueFormat where Value == String {
    fileprivate static let url = ValueFormat.text(
        "a URL such as https://host/api/ingest",
        isDiscreet: true,
        parse: { text in Endpoint.parse(text).map { _ in text } },
        written: { $0 }
    )

    /// The URL of a bucket, in the path or in the host, perhaps with a folder in it.
    fileprivate static let bucket = ValueFormat.text(
        "https://host/bucket or https://bucket.host/",
        isDiscreet: true,
        parse: { text in
            if let problem = BucketURL.problem(text) { return .failure(MismatchError(problem)) }
            return Endpoint.parse(text).map { _ in text }
        },
        written: { $0 }
    )

    fileprivate static let publicKeyPin = ValueFormat.text(
        "sha256//, then the 44 characters of a SHA-256 in base64 (several split by ;)",
        no: "pin",
        parse: { text in
            let pins = text.split(separator: ";", omittingEmptySubsequences: false)
            return pins.allSatisfy(isPublicKeyPin) ? text : nil
        },
        written: { $0 }
    )
}

extension ValueFormat where Value == QuietHours {
    fileprivate static let quietHours = ValueFormat.text(
        "HH:MM-HH:MM in UTC, or with an offset from UTC: 22:00-06:00 +02:00",
        no: "span of a day",
        parse: { QuietHours($0) },
        written: { $0.text }
    )
}

private func isPublicKeyPin(_ pin: Substring) -> Bool {
    guard pin.hasPrefix("sha256//") else { return false }
    let digest = pin.dropFirst(8).utf8
    let isBase64 = digest.dropLast().allSatisfy {
        $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/")
    }
    return digest.count == 44 && digest.last == UInt8(ascii: "=") && isBase64
}
