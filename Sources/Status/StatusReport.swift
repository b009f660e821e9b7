// The status as one value, which `waypost status --json` prints (waypost(1)).
package import Host
import JSON
package import Upload

/// All fields of `status --json`, which has times in RFC 3339.
package struct StatusReport: Codable, Sendable, Equatable {
    package var version: String
    package var deviceId = ""
    package var state = Health.critical
    package var reasons: [String] = []
    package var daemon = Daemon()
    package var clock = ClockFigures()
    package var sources: [String: Source]
    package var streams: [String: StreamFigures]
    package var upload = UploadFigures()
    package var storage = Storage()
    /// The outputs beside the queue that are configured (`mqtt`, `proxy`, `listen`), if any.
    package var outputs: [String: Output]?
    /// Absent if the database is not on a disk.
    package var disk: DiskFigures?
    /// Absent while no stream has a topic filter.
    package var mqttIn: MessagesIn?
    /// Absent if no schedule follows the sun.
    package var schedule: SchedulePlace?
    package var remote: Remote? = Remote()
    package var losses: [Loss] = []
    package var recentErrors: [RecentError] = []
    /// How often each error code was seen.
    package var errorTotals: [String: Int] = [:]

    /// Whether the gateway is still starting, as its first reason says.
    package var isStarting: Bool { reasons.first?.hasPrefix(Self.starting) == true }

    package static let starting = "starting: "

    /// The overall state, with its exit status (waypost(1), EXIT STATUS).
    package enum Health: String, Codable, Sendable {
        case healthy
        case degraded
        case critical
        /// Without the right to ask the daemon.
        case unknown

        package var exitStatus: Int32 {
            switch self {
            case .healthy: 0
            case .degraded: 1
            case .critical, .unknown: 2
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
        /// Invariants that did not hold since the start, and the first of them; absent if all did.
        package var brokenInvariants: Int?
        package var brokenInvariant: String?
    }

    package struct ClockFigures: Codable, Sendable, Equatable {
        package enum State: String, Codable, Sendable { case synced, unsynced }

        package var state = State.unsynced
        package var bootId: String = ""
        package var offsetS: Double = 0
        /// A time source that contradicts the believed one; absent without one.
        package var contradiction: String?
    }

    package struct Source: Codable, Sendable, Equatable {
        package enum State: String, Codable, Sendable {
            case unknown, loading, loaded, error, disabled
            /// Its schedule is closed, which is healthy.
            case scheduledOff = "scheduled_off"

            /// A state that this version does not know is `unknown`.
            package init(from decoder: any Decoder) throws {
                self = Self(rawValue: try String(from: decoder)) ?? .unknown
            }
        }

        package var state = State.unknown
        @OrNull package var reason: String?
        @OrNull package var code: ErrorCode?
        @OrNull package var lastRecordAt: WallTime?
        package var records: Int = 0
        package var ratePerS: Double = 0
        package var dropped: Int = 0
        package var restarts: Int = 0
        package var device: String = ""
        package var detail: String = ""
    }

    /// The position for which schedules compute the sun, to a hundredth of a degree.
    package struct SchedulePlace: Codable, Sendable, Equatable {
        package var latitude: Double
        package var longitude: Double
    }

    package struct StreamFigures: Codable, Sendable, Equatable {
        package var pending: Int = 0
        package var pendingBytes: Int = 0
        package var inFlight: Int = 0
        package var quarantined: Int = 0
        @OrNull package var oldestPendingAt: WallTime?
        package var uploaded: Int = 0
        @OrNull package var lastAttemptAt: WallTime?
        @OrNull package var lastSuccessAt: WallTime?
        @OrNull package var lastError: ErrorAt?
        @OrNull package var nextAttemptAt: WallTime?
        /// Why pending records are not sent now, such as `daily budget`; absent if they can be.
        package var waitsFor: String?
        /// Uploaded records that `waypost resend` still has to send; absent if there are none.
        package var resending: Int?
        /// Sound that nobody has marked: chunks, their stored bytes, and when they were recorded; absent while all sound
        /// is uploaded.
        package var held: Int?
        package var heldBytes: Int?
        package var heldFrom: WallTime?
        package var heldTo: WallTime?
    }

    package struct ErrorAt: Codable, Sendable, Equatable {
        @OrNull package var code: ErrorCode?
        package var message: String
        package var at: WallTime
    }

    package struct UploadFigures: Codable, Sendable, Equatable {
        @OrNull package var lastAttemptAt: WallTime?
        @OrNull package var lastSuccessAt: WallTime?
        package var state = UploadReport.Phase.unknown
        @OrNull package var nextSyncAt: WallTime?
        /// Bytes sent and received since midnight UTC, as HTTP counts them.
        package var bytesToday: Int64 = 0
        /// Absent without `upload.daily_budget`.
        package var budget: BudgetFigures?
        /// When the quiet hours end; absent outside them.
        package var quietUntil: WallTime?
    }

    package struct BudgetFigures: Codable, Sendable, Equatable {
        /// The bytes allowed per day.
        package var bytes: Int64
        package var spentBytes: Int64
        /// When the next day begins.
        package var renewsAt: WallTime
    }

    package struct Storage: Codable, Sendable, Equatable {
        /// The queue's `StorageLevel`, or an error.
        package enum State: String, Codable, Sendable { case ok, low, critical, full, error }

        package var databaseBytes: Int64 = 0
        package var freeBytes: Int64 = 0
        package var reusableBytes: Int64 = 0
        package var writtenBytes: Int64 = 0
        package var evictedRecords: Int = 0
        /// For how many days there is room without an upload, at the rate of what is stored.
        @OrNull package var roomDays: Double?
        package var state = State.ok
    }

    /// What the server asked of this device.
    package struct Remote: Codable, Sendable, Equatable {
        package struct Job: Codable, Sendable, Equatable {
            package var kind: String
            package var state: String
            package var at: WallTime

            package init(kind: String, state: String, at: WallTime) {
                (self.kind, self.state, self.at) = (kind, state, at)
            }
        }

        /// The version of the server's settings in force; nil: none.
        @OrNull package var settingsVersion: Int64?
        package var settingsState = "none"
        @OrNull package var trialSince: WallTime?
        /// The version that was rolled back last.
        @OrNull package var refusedVersion: Int64?
        @OrNull package var lastJob: Job?
    }

    package struct Loss: Codable, Sendable, Equatable {
        package var stream: String
        package var kind: String
        package var records: Int
        package var from: WallTime
        package var to: WallTime
    }

    package struct RecentError: Codable, Sendable, Equatable {
        @OrNull package var code: ErrorCode?
        package var message: String
        package var at: WallTime
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

extension StatusReport.ErrorAt {
    init(_ failure: Failure, at time: WallTime) {
        self.init(code: failure.code, message: failure.message, at: time)
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
        // A word that this version does not know must not hide the rest.
        wrappedValue = (try? Value?(from: decoder)) ?? nil
    }

    package func encode(to encoder: any Encoder) throws { try wrappedValue.encode(to: encoder) }
}

extension KeyedDecodingContainer {
    /// Reads nil where the report is of a version that did not have the field.
    func decode<Value>(_ type: OrNull<Value>.Type, forKey key: Key) throws -> OrNull<Value> {
        try decodeIfPresent(type, forKey: key) ?? OrNull(wrappedValue: nil)
    }
}

extension WallTime: Codable {
    /// Parses RFC 3339 text.
    package init(from decoder: any Decoder) throws {
        guard let time = WallTime(rfc3339: try String(from: decoder)) else {
            throw Failure("not an RFC 3339 time")
        }
        self = time
    }

    package func encode(to encoder: any Encoder) throws { try rfc3339.encode(to: encoder) }
}

extension StatusReport {
    /// The number of records pending upload in all streams.
    package var pending: Int { streams.values.reduce(0) { $0 + $1.pending } }
    /// The number of uploaded records that are still to be sent again.
    var resending: Int { streams.values.reduce(0) { $0 + ($1.resending ?? 0) } }
}
