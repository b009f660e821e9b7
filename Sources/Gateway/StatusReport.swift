// `status`, as one value (contract, section 6).
internal import Host
internal import Queue
internal import Streams

/// Everything `status --json` says; times are RFC 3339 text.
package struct StatusReport: Codable, Sendable, Equatable {
    package var version: String
    package var deviceId: String
    package var state: Health
    package var reasons: [String]
    package var daemon: Daemon
    package var clock: ClockFigures
    package var sources: [String: Source]
    package var streams: [String: StreamFigures]
    package var upload: UploadFigures
    package var storage: Storage
    package var losses: [Loss]
    package var recentErrors: [RecentError]
    /// How often each error code was seen.
    package var errorTotals: [String: Int]

    /// The overall state; its exit status is the contract's.
    package enum Health: String, Codable, Sendable {
        case healthy
        case degraded
        case critical

        package var exitStatus: Int32 {
            switch self {
            case .healthy: 0
            case .degraded: 1
            case .critical: 2
            }
        }
    }

    package struct Daemon: Codable, Sendable, Equatable {
        /// nil where nobody can tell.
        @OrNull package var running: Bool?
        package var pid: Int
        package var uptimeS: Int
        package var rssBytes: Int64
        /// Memory of its own that the system cannot take back.
        package var privateBytes: Int64
        package var cpuS: Double
    }

    package struct ClockFigures: Codable, Sendable, Equatable {
        package var state: String
        package var bootId: String
        package var offsetS: Double
    }

    package struct Source: Codable, Sendable, Equatable {
        package var state: String
        @OrNull package var reason: String?
        @OrNull package var code: String?
        @OrNull package var lastRecordAt: String?
        package var records: Int
        package var ratePerS: Double
        package var dropped: Int
        package var restarts: Int
        package var device: String
        package var detail: String
    }

    package struct StreamFigures: Codable, Sendable, Equatable {
        package var pending: Int
        package var pendingBytes: Int
        package var inFlight: Int
        package var quarantined: Int
        @OrNull package var oldestPendingAt: String?
        package var uploaded: Int
        @OrNull package var lastAttemptAt: String?
        @OrNull package var lastSuccessAt: String?
        @OrNull package var lastError: ErrorAt?
        @OrNull package var nextAttemptAt: String?
    }

    package struct ErrorAt: Codable, Sendable, Equatable {
        @OrNull package var code: String?
        package var message: String
        package var at: String
    }

    package struct UploadFigures: Codable, Sendable, Equatable {
        @OrNull package var lastAttemptAt: String?
        @OrNull package var lastSuccessAt: String?
        package var state: String
        @OrNull package var nextSyncAt: String?
        /// Bytes sent and received since midnight UTC, as HTTP counts them.
        package var bytesToday: Int64
    }

    package struct Storage: Codable, Sendable, Equatable {
        package var databaseBytes: Int64
        package var freeBytes: Int64
        package var reusableBytes: Int64
        package var writtenBytes: Int64
        package var evictedRecords: Int
        package var state: String
    }

    package struct Loss: Codable, Sendable, Equatable {
        package var stream: String
        package var kind: String
        package var records: Int
        package var from: String
        package var to: String
    }

    package struct RecentError: Codable, Sendable, Equatable {
        @OrNull package var code: String?
        package var message: String
        package var at: String
        package var count: Int
    }

    /// The JSON object, its keys in order, on one line.
    package var json: [UInt8] { encodedJSON(self) }

    /// Reads what `json` wrote; nil for anything else.
    package init?(json: [UInt8]) {
        guard let report = try? JSONInput.decode(Self.self, from: json, snakeCase: true) else {
            return nil
        }
        self = report
    }

    init(
        version: String,
        deviceId: String,
        state: Health,
        reasons: [String],
        daemon: Daemon,
        clock: ClockFigures,
        sources: [String: Source],
        streams: [String: StreamFigures],
        upload: UploadFigures,
        storage: Storage,
        losses: [Loss],
        recentErrors: [RecentError],
        errorTotals: [String: Int]
    ) {
        self.version = version
        self.deviceId = deviceId
        self.state = state
        self.reasons = reasons
        self.daemon = daemon
        self.clock = clock
        self.sources = sources
        self.streams = streams
        self.upload = upload
        self.storage = storage
        self.losses = losses
        self.recentErrors = recentErrors
        self.errorTotals = errorTotals
    }
}

/// A value that is written as `null` when it is not there, so that every field can be counted on.
@propertyWrapper
package struct OrNull<Value: Codable & Sendable & Equatable>: Codable, Sendable, Equatable {
    package var wrappedValue: Value?

    package init(wrappedValue: Value?) {
        self.wrappedValue = wrappedValue
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue {
            try container.encode(wrappedValue)
        } else {
            try container.encodeNil()
        }
    }
}

extension StatusReport.StreamFigures {
    /// What the database tells; the uploader adds the rest.
    init(_ figures: StreamStatistics) {
        self.init(
            pending: figures.pending,
            pendingBytes: figures.pendingBytes,
            inFlight: 0,
            quarantined: figures.quarantined,
            oldestPendingAt: figures.oldestPendingAt?.rfc3339,
            uploaded: figures.uploaded
        )
    }
}

/// To so many parts of one: as a person reads it.
func rounded(_ value: Double, _ parts: Double) -> Double { (value * parts).rounded() / parts }
