// The status as one value, which `waypost status --json` prints (waypost(1)).
import Host
import JSON
import Queue
import Records

/// All fields of `status --json`; times are RFC 3339 text.
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
    /// Absent if the database is not on a disk.
    package var disk: DiskFigures?
    package var losses: [Loss]
    package var recentErrors: [RecentError]
    /// How often each error code was seen.
    package var errorTotals: [String: Int]

    /// Whether the gateway is still starting, as its first reason says.
    package var isStarting: Bool { reasons.first?.hasPrefix(Self.starting) == true }

    package static let starting = "starting: "

    /// The overall state, with its exit status (waypost(1), EXIT STATUS).
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
        /// nil if that is unknown.
        @OrNull package var running: Bool?
        package var pid: Int = 0
        package var uptimeS: Int = 0
        package var rssBytes: Int64 = 0
        /// Private memory that the system cannot reclaim.
        package var privateBytes: Int64 = 0
        package var cpuS: Double = 0
    }

    package struct ClockFigures: Codable, Sendable, Equatable {
        package var state: String
        package var bootId: String = ""
        package var offsetS: Double = 0
        /// A time source that contradicts the believed one; absent without one.
        package var contradiction: String?
    }

    package struct Source: Codable, Sendable, Equatable {
        package var state: String
        @OrNull package var reason: String?
        @OrNull package var code: String?
        @OrNull package var lastRecordAt: String?
        package var records: Int = 0
        package var ratePerS: Double = 0
        package var dropped: Int = 0
        package var restarts: Int = 0
        package var device: String = ""
        package var detail: String = ""
    }

    package struct StreamFigures: Codable, Sendable, Equatable {
        package var pending: Int = 0
        package var pendingBytes: Int = 0
        package var inFlight: Int = 0
        package var quarantined: Int = 0
        @OrNull package var oldestPendingAt: String?
        package var uploaded: Int = 0
        @OrNull package var lastAttemptAt: String?
        @OrNull package var lastSuccessAt: String?
        @OrNull package var lastError: ErrorAt?
        @OrNull package var nextAttemptAt: String?
        /// Why pending records are not sent now, such as `daily budget`; absent if they can be.
        package var waitsFor: String?
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
        package var bytesToday: Int64 = 0
        /// Absent without `upload.daily_budget`.
        package var budget: BudgetFigures?
        /// When the quiet hours end; absent outside them.
        package var quietUntil: String?
    }

    package struct BudgetFigures: Codable, Sendable, Equatable {
        /// The bytes allowed per day.
        package var bytes: Int64
        package var spentBytes: Int64
        /// When the next day begins.
        package var renewsAt: String
    }

    package struct Storage: Codable, Sendable, Equatable {
        package var databaseBytes: Int64 = 0
        package var freeBytes: Int64 = 0
        package var reusableBytes: Int64 = 0
        package var writtenBytes: Int64 = 0
        package var evictedRecords: Int = 0
        package var state: String
    }

    /// The disk below the state directory; its rates are null in the first hour.
    package struct DiskFigures: Codable, Sendable, Equatable {
        package var name: String
        package var sizeBytes: Int64
        /// Bytes written by all programs since the boot.
        package var writtenBytes: Int64
        @OrNull package var bytesADay: Int64?
        /// The part of them that Waypost writes.
        @OrNull package var ownBytesADay: Int64?
        /// The bytes that can be written before it wears out, estimated from its size.
        package var enduranceBytes: Int64
        /// The years until then at this rate.
        @OrNull package var years: Double?
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
}

extension StatusReport {
    /// Parses the text of `json`; returns nil for anything else.
    package init?(json: [UInt8]) {
        guard let report = try? JSONInput.decode(Self.self, from: json, snakeCase: true) else {
            return nil
        }
        self = report
    }
}

/// An optional value that is written as `null` when absent, so that its field is always present.
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
    /// Takes the database's figures; the uploader adds the rest.
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

extension StatusReport {
    /// The number of records pending upload in all streams.
    package var pending: Int { streams.values.reduce(0) { $0 + $1.pending } }
}
