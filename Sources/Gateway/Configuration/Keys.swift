// Every key of the configuration (contract, section 2): ranges and summaries; defaults stand in
// `Configuration`.
internal import Queue
internal import Streams

extension KeyTable {
    mutating func addGeneral() {
        add(
            "device_id",
            \.deviceID,
            .deviceID,
            "Name of this device at the server; \"auto\" makes a UUID once and keeps it."
        )
        add(
            "state_directory",
            \.stateDirectory,
            .path(),
            "Database, device id and snapshot; systemd's $STATE_DIRECTORY wins over it."
        )
        add(
            "runtime_directory",
            \.runtimeDirectory,
            .path(limit: 90),
            "Control socket; systemd's $RUNTIME_DIRECTORY wins over it."
        )
    }

    mutating func addUpload() {
        add(
            "upload.required",
            \.upload.required,
            .boolean,
            "Collect nothing before the server has accepted this device once."
        )
        add(
            "upload.destination",
            \.upload.destination,
            .choice(),
            "What takes the data: an ingest server, or a bucket of an S3-compatible store."
        )
        add(
            "upload.endpoint",
            optional: \.upload.endpoint,
            .endpoint,
            example: "\"https://example.org/api/ingest\"",
            "Where to upload; http:// only to loopback unless allow_plaintext is true."
        )
        add(
            "upload.allow_plaintext",
            \.upload.allowPlaintext,
            .boolean,
            "Permit an http:// endpoint: token and data are then readable on the way."
        )
        add(
            "upload.token_file",
            optional: \.upload.tokenFile,
            .path(),
            example: "\"/etc/waypost/token\"",
            "File of mode 0600 with the device token; without it the systemd credential waypost.token."
        )
        addBucket()
        add(
            "upload.ca_file",
            optional: \.upload.caFile,
            .path(),
            example: "\"/etc/waypost/ca.pem\"",
            "Extra certificate authorities to trust, in PEM."
        )
        add(
            "upload.pinned_public_key",
            optional: \.upload.pinnedPublicKey,
            .publicKeyPin,
            example: "\"sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"",
            "Accept only a server with this public key."
        )
        add(
            "upload.interval",
            \.upload.interval,
            .duration(.milliseconds(100) ... .days(7)),
            "Time from one upload to the next."
        )
        add(
            "upload.timeout",
            \.upload.timeout,
            .duration(.seconds(1) ... .seconds(3600)),
            "A request without progress for this long is ended."
        )
        add(
            "upload.max_batch_bytes",
            \.upload.maxBatchBytes,
            .size(1000...1_000_000_000),
            "Largest request body before compression; a single larger record still goes alone."
        )
        add(
            "upload.compression",
            \.upload.compression,
            .choice(),
            "How request bodies are compressed."
        )
        add(
            "upload.max_rate",
            optional: \.upload.maxRate,
            .size(1000...10_000_000_000),
            example: "\"100kB\"",
            "Most bytes a second to send."
        )
        add(
            "upload.max_attempts",
            \.upload.maxAttempts,
            .integer(1...100),
            "Refusals before quarantine; a record refused alone goes there at once, an outage does not count."
        )
        add(
            "upload.heartbeat_url",
            optional: \.upload.heartbeatURL,
            .endpoint,
            example: "\"https://example.org/ping/waypost\"",
            "Fetched after an upload that left nothing, at most once a minute: a sign of life."
        )
    }

    private mutating func addBucket() {
        add(
            "upload.bucket_url",
            optional: \.upload.bucketURL,
            .bucketURL,
            example: "\"https://s3.example.org/bucket\"",
            "Bucket for destination s3; http:// only as for endpoint."
        )
        add(
            "upload.region",
            \.upload.region,
            .region,
            "Region of the bucket, as its store calls it."
        )
        add(
            "upload.credentials_file",
            optional: \.upload.credentialsFile,
            .path(),
            example: "\"/etc/waypost/s3\"",
            "File of mode 0600 with ID:SECRET or an AWS profile; else the credential waypost.s3."
        )
    }

    mutating func addBeacons() {
        add("beacons.enabled", \.beacons.enabled, .boolean, "Listen for Bluetooth LE beacons.")
        add(
            "beacons.source",
            \.beacons.source,
            .source,
            "Adapter, capture file to replay, or controller over TCP."
        )
        add(
            "beacons.replay_speed",
            \.beacons.replaySpeed,
            .number(0...1000),
            "Pace of a btsnoop replay: 1 is that of the capture, 0 as fast as it goes."
        )
        add(
            "beacons.scan",
            \.beacons.scan,
            .choice(),
            "Only listen, or also ask each beacon for its scan response."
        )
        add(
            "beacons.scan_interval",
            \.beacons.scanInterval,
            .duration(Self.scanTimes),
            "Time from the start of one scan window to the next."
        )
        add(
            "beacons.scan_window",
            \.beacons.scanWindow,
            .duration(Self.scanTimes),
            "Time the radio listens in each scan interval, at most the interval."
        )
        add(
            "beacons.allow",
            \.beacons.allow,
            .patterns,
            "Beacons to keep; an empty list keeps all."
        )
        add("beacons.deny", \.beacons.deny, .patterns, "Beacons to leave out, also if allowed.")
        add(
            "beacons.max_rate",
            \.beacons.maxRate,
            .number(0...1000, above: true),
            "Sightings a second kept for each beacon, evenly; 1000 keeps all."
        )
        add(
            "beacons.unknown",
            \.beacons.unknown,
            .boolean,
            "Keep advertisements that no decoder knows."
        )
        add(
            "beacons.bindkeys",
            table: \.beacons.bindkeys,
            .bindkeys,
            "Keys of encrypted BTHome devices by address."
        )
    }

    /// Four to 16,384 times 0.625 ms (Bluetooth Core Specification, Vol 4, Part E, 7.8.10).
    private static let scanTimes = Duration.microseconds(2500) ... .milliseconds(10_240)

    mutating func addLocation() {
        add("location.enabled", \.location.enabled, .boolean, "Collect the position from gpsd.")
        add("location.gpsd", \.location.gpsd, .hostPort, "Where gpsd listens.")
        add(
            "location.interval",
            \.location.interval,
            .duration(.zero ... .days(1)),
            "At most one position is kept in each interval."
        )
        add(
            "location.min_distance",
            \.location.minDistance,
            .number(0...100_000, unit: "metres"),
            "Distance moved before another position is kept."
        )
    }

    mutating func addAudio() {
        add("audio.enabled", \.audio.enabled, .boolean, "Record sound.")
        add(
            "audio.device",
            \.audio.devices,
            .devices,
            "Sound device: an ALSA name, or usb-PORT; of several, the first that can be opened."
        )
        add(
            "audio.channel",
            \.audio.channel,
            .channel,
            "Of a device with several channels: the first that is not digital silence, or its number."
        )
        add(
            "audio.rate",
            \.audio.rate,
            .integer(8000...192_000, step: 50, unit: "Hz"),
            "Sampling rate; opus and aac take only some (8000, 12000, 16000, 24000, 48000 both)."
        )
        add(
            "audio.chunk",
            \.audio.chunk,
            .duration(.seconds(1) ... .seconds(600)),
            "Length of a record, a whole multiple of overlap (of 2s where that is 0s), at least two."
        )
        add(
            "audio.overlap",
            \.audio.overlap,
            .duration(.zero ... .seconds(60), step: .milliseconds(20)),
            "Sound that a record shares with the one before it."
        )
        add(
            "audio.codec",
            \.audio.codec,
            .choice([("opus", .opus), ("flac", .flac), ("aac", .aac), ("wav", .wav)]),
            "How sound is encoded."
        )
        add(
            "audio.bitrate",
            \.audio.bitrate,
            .integer(6000...510_000, unit: "bits a second"),
            "Rate of opus (6000 to 510000) and aac (16000 to 160000, at most 6 times the sampling rate)."
        )
        add(
            "audio.min_level_db",
            optional: \.audio.minLevel,
            .number(-120...0, unit: "dBFS"),
            example: "-60.0",
            "Records quieter than this on average are counted and not kept."
        )
    }

    mutating func addStorage() {
        add(
            "storage.commit_interval",
            \.storage.commitInterval,
            .duration(.milliseconds(10) ... .seconds(60)),
            "Time from one commit to the next: the most that a power cut can cost."
        )
        add(
            "storage.retention",
            \.storage.retention,
            .duration(.zero ... .days(3650)),
            "How long data stays on the device after its upload."
        )
        add(
            "storage.max_size",
            \.storage.maxSize,
            .size(1_000_000...1_000_000_000_000),
            "Most that the database and its journal may take."
        )
        add(
            "storage.warn_free",
            \.storage.warnFree,
            .size(0...1_000_000_000_000),
            "With less free space than this the status is degraded."
        )
        add(
            "storage.critical_free",
            \.storage.criticalFree,
            .size(0...1_000_000_000_000),
            "With less free space than this old records are given up; at most warn_free."
        )
    }

    mutating func addStreams() {
        for stream in StreamList().streams.sorted(by: { $0.number < $1.number }) {
            add(
                "streams.\(stream)",
                \.streams[stream.name],
                .streamName,
                "Name of the stream of \(stream) on the wire."
            )
        }
        add(
            "metrics.textfile",
            optional: \.metricsTextfile,
            .path(),
            example: "\"/var/lib/prometheus/node-exporter/waypost.prom\"",
            "Figures for Prometheus, written every few seconds; the service must be able to."
        )
        add("log.level", \.log.level, .choice(), "Least grave message that is logged.")
    }
}

extension Duration {
    static func days(_ count: Int) -> Duration { .seconds(count * 86_400) }
}
