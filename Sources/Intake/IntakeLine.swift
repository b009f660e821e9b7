// Parses a line of the intake socket: `{"stream": "weather", "data": {…}, "timestamp": "…"}`.
import Host
import JSON

/// Why a line or an object is refused, with the message for its program.
struct IntakeError: Error, Equatable {
    /// The gateway is stopping.
    ///
    /// `waypost put` sends such a line, and all after it, to the next process.
    static let stopping = Self("not kept: the gateway stops; send it again when it is back")

    private static let fullEnding = " programs are connected already; try again later"

    /// The connection limit is reached; nothing that the program sent was read.
    static func full(_ programs: Int) -> Self { Self("\(programs)\(fullEnding)") }

    /// True if this answers the whole connection, not one line.
    var isOfConnection: Bool { self == Self.stopping || message.hasSuffix(Self.fullEnding) }

    var message: String
    /// The time until the stream accepts a record again; for lines beyond `max_rate`, and on a full
    /// disk.
    var retryAfter: Duration?

    /// The time between two attempts on a full disk; the gateway checks it more often.
    private static let fullPause = Duration.seconds(60)

    init(_ message: String, retryAfter: Duration? = nil) {
        self.message = message
        self.retryAfter = retryAfter
    }

    /// The sink did not store a line, for `error`.
    init(notKept error: any Error) {
        let isFull = (error as? Failure)?.code == .storageFull
        self.init(
            "not kept: \("\(error)".plainWords(atMost: 300)); send it again later",
            retryAfter: isFull ? Self.fullPause : nil
        )
    }

    /// The answer as JSON.
    var answer: [UInt8] {
        var text = JSONWriter()
        text.value(message)
        let retry = retryAfter.map { ", \"retry_after_ms\": \($0.milliseconds)" } ?? ""
        return Array("{\"error\": ".utf8) + text.bytes + Array("\(retry)}".utf8)
    }
}

/// A valid line; its stream may still be undeclared.
struct IntakeLine: Equatable {
    static let accepted = Array("{\"accepted\": 1}".utf8)
    /// A request, not a record: delay this connection's lines beyond `max_rate`.
    static let waitForRate = Array("{\"wait\":true}".utf8)
    static let waits = Array("{\"accepted\": 0}".utf8)
    /// The depth limit of an object and its members, as in the server (`BodyJSON.recordDepth`).
    static let depthLimit = 16
    /// The bytes that a line may hold beside its object: the other members, and blanks.
    static let envelope = 1024

    var stream: String
    var given: WallTime?
    /// When it was observed on CLOCK_BOOTTIME of this boot, instead of `given`.
    var boot: BootInstant?
    /// The members of `data` as received, without braces and without blanks between their parts.
    var members: [UInt8]

    /// Parses any bytes; throws the reason if they are not a valid line.
    init(_ bytes: [UInt8]) throws(IntakeError) {
        do throws(JSONError) {
            var cursor = Self.cursor(bytes, depthLimit: Self.depthLimit + 1)
            self = try Self.read(&cursor)
        } catch {
            throw IntakeError("\(error)")
        }
    }

    private static func read(_ cursor: inout JSONCursor) throws(JSONError) -> Self {
        var stream: String?
        var members: [UInt8]?
        var given: WallTime?
        var boot: BootInstant?
        try cursor.openObject("a line is a JSON object with stream and data")
        while let name = try cursor.nextName() {
            switch String(decoding: name.text, as: UTF8.self) {
            case "stream":
                stream = String(decoding: try cursor.text("stream is a text"), as: UTF8.self)
            case "data": members = try Self.members(&cursor, "data is a JSON object")
            case "timestamp": given = try Self.time(&cursor)
            case "boottime_ns": boot = try Self.bootTime(&cursor)
            default:
                let shown = JSONCursor.shown(name.text)
                let message = "\"\(shown)\" is none of stream, data, timestamp and boottime_ns"
                throw cursor.refusal(message, name.place)
            }
        }
        try cursor.end()
        guard let stream else { throw cursor.refusal("stream is missing: the name of a stream") }
        guard let members else { throw cursor.refusal("data is missing: a JSON object") }
        if given != nil, boot != nil {
            throw cursor.refusal("timestamp and boottime_ns say the same: send one of them")
        }
        return Self(stream: stream, given: given, boot: boot, members: members)
    }

    private init(stream: String, given: WallTime?, boot: BootInstant?, members: [UInt8]) {
        (self.stream, self.given, self.boot, self.members) = (stream, given, boot, members)
    }

    /// Reads an RFC 3339 time of a plausible year.
    private static func time(_ cursor: inout JSONCursor) throws(JSONError) -> WallTime {
        let expected = "timestamp is a text such as \"2026-11-21T04:30:07.123Z\""
        let place = cursor.place
        let text = String(decoding: try cursor.text(expected), as: UTF8.self)
        guard let time = WallTime(rfc3339: text), years.contains(time) else {
            throw cursor.refusal("\(expected) of the years 1970 to 2200", place)
        }
        return time
    }

    /// Reads nanoseconds on CLOCK_BOOTTIME.
    private static func bootTime(_ cursor: inout JSONCursor) throws(JSONError) -> BootInstant {
        let place = cursor.place
        var digits: [UInt8] = []
        try cursor.copyValue(to: &digits)
        guard let number = Int64(String(decoding: digits, as: UTF8.self)), number >= 0 else {
            throw cursor.refusal("boottime_ns is a whole number of nanoseconds since boot", place)
        }
        return BootInstant(nanoseconds: number)
    }

    /// Reads a `timestamp` that is a JSON value by itself.
    static func given(_ value: [UInt8]) throws(JSONError) -> WallTime {
        var cursor = JSONCursor(value)
        return try time(&cursor)
    }

    static let years =
        WallTime(milliseconds: 0)...WallTime(milliseconds: 7_289_654_399_999)

    // MARK: Objects

    static func cursor(_ bytes: [UInt8], depthLimit: Int = depthLimit) -> JSONCursor {
        let memberLimit = IntakeMembers.objectLimit
        return JSONCursor(bytes, depthLimit: depthLimit, memberLimit: memberLimit, foldsCase: true)
    }

    /// Returns the members of a bare object, the input of `waypost put`.
    static func members(of object: [UInt8]) throws(IntakeError) -> [UInt8] {
        do throws(JSONError) {
            var cursor = cursor(object)
            let members = try members(&cursor, "a line is a JSON object")
            try cursor.end()
            return members
        } catch {
            throw IntakeError("\(error)")
        }
    }

    private static func members(
        _ cursor: inout JSONCursor,
        _ expected: String
    ) throws(JSONError) -> [UInt8] {
        let place = cursor.place
        var (members, value) = (IntakeMembers(), [UInt8]())
        try cursor.openObject(expected)
        while let name = try cursor.nextName() {
            if let problem = members.problem(adding: name.text) {
                throw cursor.refusal(problem, name.place)
            }
            value.removeAll(keepingCapacity: true)
            try cursor.copyValue(to: &value)
            members.append(name.text, name.written, value)
        }
        if let problem = members.problem { throw cursor.refusal(problem, place) }
        return members.bytes
    }

    /// Returns the line for an object, with its line feed; without a time, the gateway's is used.
    static func line(
        stream: String,
        members: [UInt8],
        at time: DatedRecord.Time? = nil
    ) -> [UInt8] {
        var line = JSONWriter()
        line.object {
            $0.field("stream", stream)
            $0.key("data")
            $0.raw(Array("{".utf8) + members + Array("}".utf8))
            switch time {
            case .wall(let wall): $0.field("timestamp", wall)
            case .boot(let boot): $0.field("boottime_ns", boot.nanoseconds)
            case nil: break
            }
        }
        return line.bytes + [10]
    }

    // MARK: Answers

    private struct Answer: Decodable {
        var accepted: Int?
        var error: String?
    }

    /// Returns why the gateway refused, as its answer says; nil if it has accepted `count` records.
    static func refusal(in answer: LineBuffer.Line, unlessAccepted count: Int) -> String? {
        guard case .whole(let bytes) = answer,
            let answer: Answer = try? JSONInput.decode(from: bytes)
        else { return "the gateway's answer cannot be read" }
        return answer.accepted == count ? nil : answer.error ?? "refused without a reason"
    }
}
