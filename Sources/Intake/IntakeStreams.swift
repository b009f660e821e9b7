// The declared user streams and their limits.
import Host
import JSON
import Records
import Setup
import Status

/// The limits of a stream over time: a token bucket with one token per record, and the number of
/// dates.
struct RecordRate: Sendable {
    /// The dates that records may name per day: the server begins a file for each, and as many per day.
    static let datesPerDay = 1000

    private let perSecond: Double
    private let burst: Double
    private var tokens: Double
    private var filled: BootInstant
    /// Days since 1970 that records have named since `datesSince`.
    private var dates: Set<Int64> = []
    private var datesSince: BootInstant

    /// `burst`: the most records at once; by default those of one second.
    init(perSecond: Double, burst: Double? = nil, now: BootInstant) {
        self.perSecond = perSecond
        self.burst = burst ?? max(10, perSecond)
        tokens = self.burst
        (filled, datesSince) = (now, now)
    }

    /// Throws the reason if a record names one date too many.
    mutating func check(
        _ given: WallTime?,
        of stream: String,
        at now: BootInstant
    ) throws(IntakeError) {
        guard let given else { return }
        if now - datesSince >= .seconds(86_400) { (dates, datesSince) = ([], now) }
        guard dates.count < Self.datesPerDay || dates.contains(given.utcDay) else {
            throw IntakeError(
                "too many dates: records of stream \(stream) have named \(Self.datesPerDay) days; "
                    + "send it again tomorrow"
            )
        }
        dates.insert(given.utcDay)
    }

    /// Takes a token and returns nil; without a token, returns the time until there is one.
    mutating func delay(at now: BootInstant) -> Duration? {
        if now > filled {
            tokens = min(burst, tokens + (now - filled).inSeconds * perSecond)
            filled = now
        }
        guard tokens >= 1 else {
            // At most a year, because a larger number might overflow Int64 and trap.
            let milliseconds = min(1000 * (1 - tokens) / perSecond, 365 * 86_400_000).rounded(.up)
            return .milliseconds(max(1, Int64(milliseconds)))
        }
        tokens -= 1
        return nil
    }
}

/// Checks lines against the declared streams and their limits.
struct IntakeStreams {
    private struct Declared {
        var stream: UserStream
        var rate: RecordRate
    }

    private var declared: [String: Declared] = [:]
    private var names = ""
    /// Bytes of the longest line that any stream accepts.
    private(set) var longestLine = 0

    init(_ streams: [UserStream], now: BootInstant) {
        declare(streams, now: now)
    }

    /// Replaces the declared streams; one with the same `max_rate` keeps its token bucket.
    package mutating func declare(_ streams: [UserStream], now: BootInstant) {
        let before = declared
        declared = [:]
        for stream in streams {
            let known = before[stream.name].flatMap { known in
                known.stream.maxRate == stream.maxRate ? known.rate : nil
            }
            let rate = known ?? RecordRate(perSecond: stream.maxRate, now: now)
            declared[stream.name] = Declared(stream: stream, rate: rate)
        }
        names = streams.map(\.name).joined(separator: ", ")
        longestLine = (streams.map(\.maxRecordBytes).max() ?? 0) + IntakeLine.envelope
    }

    /// Returns the record of a line, or throws the reason.
    mutating func record(of bytes: [UInt8], _ clock: any HostClock) throws(IntakeError)
        -> UserRecord
    {
        let line = try IntakeLine(bytes)
        guard let stream = declared[line.stream]?.stream else { throw undeclared(line.stream) }
        let size = line.members.count + 2
        guard size <= stream.maxRecordBytes else {
            throw IntakeError(
                "too long: \(size) bytes, stream \(stream.name) takes \(stream.maxRecordBytes) "
                    + "(stream.\(stream.name).max_record_bytes)"
            )
        }
        var stamp = clock.stamp()
        try declared[line.stream]?.rate.check(line.given, of: stream.name, at: stamp.boot)
        if let delay = declared[line.stream]?.rate.delay(at: stamp.boot) {
            throw IntakeError(
                "too fast: stream \(stream.name) takes \(Self.shown(stream.maxRate)) records per second "
                    + "(stream.\(stream.name).max_rate); send it again later",
                retryAfter: delay
            )
        }
        if let boot = line.boot {
            guard boot <= stamp.boot else {
                throw IntakeError("boottime_ns is later than now: CLOCK_BOOTTIME of this boot")
            }
            stamp = stamp.advanced(by: boot - stamp.boot)
        }
        return UserRecord(
            stream: stream.name,
            stamp: stamp,
            given: line.given,
            members: line.members
        )
    }

    /// The refusal of a line that exceeds the buffer.
    var tooLong: IntakeError {
        IntakeError(
            "too long: a line takes \(longestLine) bytes at most, by the largest max_record_bytes declared"
        )
    }

    private func undeclared(_ name: String) -> IntakeError {
        let shown = JSONCursor.shown(Array(name.utf8))
        let known = names.isEmpty ? "no stream is declared" : "declared: \(names)"
        let table =
            UserStream.problem(withName: name) == nil
            ? "; [stream.\(name)] in the configuration declares it" : ""
        return IntakeError("stream \"\(shown)\" is not declared (\(known))\(table)")
    }

    private static func shown(_ rate: Double) -> String {
        rate == rate.rounded() ? "\(Int(rate))" : "\(rate)"
    }
}
