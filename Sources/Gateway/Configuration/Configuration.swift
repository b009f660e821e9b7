// The settings of the gateway as plain data; each property's initial value is the key's default.
internal import Queue
package import Streams

/// All settings, one property a key of the file (contract, section 2).
package struct Configuration: Sendable, Equatable {
    /// `auto`, or the id to use; `DeviceID.resolve` gives the effective one.
    package var deviceID = "auto"
    package var stateDirectory = "/var/lib/waypost"
    package var runtimeDirectory = "/run/waypost"
    package var upload = Upload()
    package var beacons = Beacons()
    package var location = Location()
    package var audio = Audio()
    package var storage = Storage()
    package var streams = Streams()
    /// Each `[stream.NAME]`, in the order of the file.
    package var userStreams: [UserStream] = []
    /// `metrics.textfile`: where Prometheus finds the figures.
    package var metricsTextfile: String?
    package var log = Log()

    package init() {}

    /// `[upload]`: where data goes, how often and how much at a time.
    package struct Upload: Sendable, Equatable {
        package var required = true
        package var destination = Destination.ingest
        /// A checked `http` or `https` URL.
        package var endpoint: String?
        package var allowPlaintext = false
        package var tokenFile: String?
        /// A checked URL of a bucket, with or without a `/` at its end.
        package var bucketURL: String?
        package var region = "us-east-1"
        package var credentialsFile: String?
        package var caFile: String?
        /// As curl's `CURLOPT_PINNEDPUBLICKEY` takes it: `sha256//…`, several split by `;`.
        package var pinnedPublicKey: String?
        package var interval = Duration.seconds(300)
        package var timeout = Duration.seconds(30)
        package var maxBatchBytes = 8 * 1024 * 1024
        package var compression = Compression.gzip
        /// Bytes a second.
        package var maxRate: Int?
        package var maxAttempts = 5
        /// Fetched after each sync that left nothing: a checked `http` or `https` URL.
        package var heartbeatURL: String?

        /// Where uploads go; nil while that is not configured.
        package var target: String? {
            switch destination {
            case .ingest: endpoint
            case .s3: bucketURL
            }
        }
    }

    /// What takes the uploads.
    package enum Destination: String, Sendable, CaseIterable {
        /// A server as the contract describes it.
        case ingest
        /// A bucket of an S3-compatible object store.
        case s3
    }

    /// How a request body is compressed.
    package enum Compression: String, Sendable, CaseIterable {
        case gzip
        case zstd
        case none
    }

    /// `[beacons]`: what is heard by radio and which of it is kept.
    package struct Beacons: Sendable, Equatable {
        package var enabled = true
        package var source = BeaconSource.adapter(0)
        /// 1 = the capture's own pace, 0 = as fast as it goes.
        package var replaySpeed = 1.0
        package var scan = Scan.passive
        package var scanInterval = Duration.milliseconds(100)
        package var scanWindow = Duration.milliseconds(50)
        package var allow: [String] = []
        package var deny: [String] = []
        /// Sightings a second kept for each beacon.
        package var maxRate = 4.0
        package var unknown = false
        /// BTHome keys of 16 bytes.
        package var bindkeys: [BluetoothAddress: [UInt8]] = [:]
    }

    /// Whether the scanner asks beacons for their scan response.
    package enum Scan: String, Sendable, CaseIterable {
        case passive
        case active
    }

    /// `[location]`: the position from gpsd.
    package struct Location: Sendable, Equatable {
        package var enabled = true
        package var gpsd = HostPort(host: "localhost", port: 2947)
        package var interval = Duration.seconds(10)
        /// Metres.
        package var minDistance = 0.0
    }

    /// `[audio]`: sound from ALSA.
    package struct Audio: Sendable, Equatable {
        package var enabled = true
        /// ALSA PCM names in order of preference.
        package var devices = ["default"]
        /// Counted from 1; nil for the first that is not digital silence.
        package var channel: Int?
        /// Frames a second.
        package var rate = 16_000
        package var chunk = Duration.seconds(30)
        package var overlap = Duration.seconds(2)
        package var codec = AudioCodec.opus
        /// Bits a second.
        package var bitrate = 24_000
        /// dBFS.
        package var minLevel: Double?
    }

    /// `[storage]`: the queue on disk; sizes in bytes.
    package struct Storage: Sendable, Equatable {
        package var commitInterval = Duration.seconds(1)
        package var retention = Duration.seconds(3 * 86_400)
        package var maxSize = 2_000_000_000
        package var warnFree = 100_000_000
        package var criticalFree = 50_000_000
    }

    /// `[streams]`: names on the wire.
    package struct Streams: Sendable, Equatable {
        /// By the stream's own name, of those that are built in.
        private var names = Dictionary(
            uniqueKeysWithValues: StreamList().kinds.map { ($0.stream.name, $0.wire) }
        )

        /// The name of a stream on the wire; for one that is not built in its own.
        package subscript(stream: Stream) -> String {
            get { self[stream.name] }
            set { self[stream.name] = newValue }
        }

        /// By the stream's own name.
        package subscript(name: String) -> String {
            get { names[name] ?? name }
            set { names[name] = newValue }
        }
    }

    /// The name of any stream on the wire, the user's included.
    package func wire(of stream: Stream) -> String {
        userStreams.first { $0.name == stream.name }?.wire ?? streams[stream]
    }

    /// `[log]`: what is written to standard error.
    package struct Log: Sendable, Equatable {
        package var level = LogLevel.info
    }

    /// The least grave message that is still logged.
    package enum LogLevel: String, Sendable, CaseIterable {
        case error
        case warning
        case info
        case debug
    }
}

/// A TCP address as it is written: `localhost:2947`, `[::1]:2947`.
package struct HostPort: Sendable, Equatable, CustomStringConvertible {
    /// A name or an address, without brackets.
    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    package var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

/// Where advertisements come from.
package enum BeaconSource: Sendable, Equatable, CustomStringConvertible {
    /// `hciN`: a Bluetooth adapter of this host.
    case adapter(Int)
    /// `btsnoop:PATH`: a capture that is replayed.
    case capture(path: String)
    /// `h4:HOST:PORT`: a controller that speaks H4 over TCP.
    case controller(HostPort)

    package var description: String {
        switch self {
        case .adapter(let number): "hci\(number)"
        case .capture(let path): "btsnoop:\(path)"
        case .controller(let address): "h4:\(address)"
        }
    }
}
