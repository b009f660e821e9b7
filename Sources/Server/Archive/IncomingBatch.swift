// Parses a request body into a batch, and checks its records.
package import HTTP
import Host
package import ServerBase

/// The facts about a batch that is fit to be stored; its records stay in the body.
package struct IncomingBatch: Sendable {
    package private(set) var stream = ""
    package private(set) var device = ""
    package private(set) var count = 0
    /// The gateway's version and clock state, as reported; "" if missing.
    private(set) var version = ""
    private(set) var clock = ""
    /// The days of its records; each is a file.
    package private(set) var dates: Set<String> = []
    /// The first and last sequence number of its records, as reported.
    private(set) var sequence: ClosedRange<Int64>?
    /// Its records, unless it has more than `maxKept`: those are parsed again to be stored.
    private var records: [IncomingRecord] = []
    /// The range of the records' array.
    private var data: Range<Int>?
    private var columns: IncomingColumns?
    private var total: Int?
    /// The reason why the first bad record was refused.
    private var fault: String?

    /// The sources of its events, each with the event's kind.
    private(set) var states: Set<String> = []

    /// Its replies to jobs, in order.
    private var replies: [IncomingReply] = []

    /// The maximum number of files for one batch; the gateway halves a refused batch.
    static let maxDates = 100

    /// A record takes 350 bytes here, and one batch per worker waits.
    private static let maxKept = 512
    /// More than a device has jobs.
    private static let maxReplies = 1024

    /// Checks a whole body; throws an HTTPError with the reason, and then nothing may be stored.
    ///
    /// Throws `IncomingColumns` for a body in columns: it is checked after it was written as rows.
    ///
    /// `limit`: the processor time that the check may use.
    package init(checking body: ByteView, limit: WorkLimit = .checking) throws {
        do {
            var text = BodyJSON(body, limit: limit)
            try text.object { try readMember(&$0, $1) }
            try text.end()
        } catch let fault as BodyError {
            throw Self.refusal("the body is not a JSON object: see byte \(fault.place)")
        }
        guard isName(stream) else {
            throw Self.refusal("stream_name is missing or not a plain name")
        }
        guard isName(device) else {
            throw Self.refusal("device_id is missing or not a plain name")
        }
        if let columns {
            guard data == nil else { throw Self.refusal("there are both data and columns") }
            throw columns
        }
        guard data != nil else { throw Self.refusal("data is missing or not an array") }
        guard total == count else {
            throw Self.refusal("total_records is \(total ?? -1), data has \(count)")
        }
        if let fault { throw Self.refusal(fault) }
        guard dates.count <= Self.maxDates else {
            throw Self.refusal(
                "records of more than \(Self.maxDates) days in one batch of \(device)"
            )
        }
    }

    private static func refusal(_ reason: String) -> HTTPError {
        HTTPError(status: 422, reason: reason)
    }

    /// Passes each record of a checked body in order; throws an HTTPError if that takes too long.
    package func forEachRecord(
        of body: ByteView,
        limit: WorkLimit = .storing,
        _ receive: (IncomingRecord) throws -> Void
    ) throws {
        guard let data else { return }
        if records.count == count { return try records.forEach(receive) }
        var text = BodyJSON(body, at: data.lowerBound, limit: limit)
        try text.array { text in try receive(try IncomingRecord(&text)) }
    }

    /// Its replies to jobs, in order, with their record files.
    package var filedReplies: [IncomingReply] {
        replies.map { reply in
            var filed = reply
            filed.file = ArchiveFile.path(in: folder(reply.date))
            return filed
        }
    }

    /// Returns the folder for records of a day, relative to the archive's directory.
    package func folder(_ date: String) -> String { ArchiveFile.folder(stream, date, device) }

    /// Returns the folder for a day's audio files, relative to the archive's directory.
    package func audioFolder(_ date: String) -> String {
        ArchiveFile.audioFolder(stream, date, device)
    }

    /// Returns the folder for a day in a bucket.
    package func bucketFolder(_ date: String) -> BucketFolder {
        BucketFolder(stream: stream, day: date, device: device)
    }

    // MARK: Checking

    /// Reads a member of the body; of members with the same name the last counts.
    private mutating func readMember(_ text: inout BodyJSON, _ name: Range<Int>) throws {
        switch JSONString.read(text.bytes, name) {
        case "stream_name": stream = try string(&text) ?? ""
        case "device_id": device = try string(&text) ?? ""
        case "data": try readData(&text)
        case "columns":
            let value = try text.value()
            columns = IncomingColumns(member: name.lowerBound..<value.upperBound, value: value)
        case "batch_metadata": try readMetadata(&text)
        default: try text.value()
        }
    }

    private func string(_ text: inout BodyJSON) throws -> String? {
        let isString = text.next() == UInt8(ascii: "\"")
        let value = try text.value()
        return isString ? JSONString.read(text.bytes, value) : nil
    }

    private mutating func readMetadata(_ text: inout BodyJSON) throws {
        (total, version, clock, sequence) = (nil, "", "", nil)
        guard text.next() == UInt8(ascii: "{") else {
            try text.value()
            return
        }
        let line = try RecordLine(&text)
        total = line.integer("total_records").map { Int($0) }
        version = printable(line.text("app_version") ?? "", limit: 40)
        clock = printable(line.text("clock") ?? "", limit: 40)
        sequence = SequenceHoles.range(
            from: line.integer("first_sequence"),
            to: line.integer("last_sequence")
        )
    }

    private mutating func readData(_ text: inout BodyJSON) throws {
        (count, dates, states, replies, data, fault) = (0, [], [], [], nil, nil)
        records = []
        guard text.next() == UInt8(ascii: "[") else {
            try text.value()
            return
        }
        let start = text.position
        try text.array { try readRecord(&$0) }
        data = start..<text.position
    }

    /// Checks a record; after a bad one, the others only have to be valid JSON.
    private mutating func readRecord(_ text: inout BodyJSON) throws {
        defer { count += 1 }
        guard fault == nil else {
            try text.value()
            return
        }
        _ = text.next()
        let start = text.position
        do {
            let record = try text.record { try IncomingRecord(&$0) }
            if dates.count <= Self.maxDates { dates.insert(record.time.date) }
            if let state = record.state, states.count <= DeviceLimits.states {
                states.insert(state)
            }
            if let reply = record.reply, replies.count < Self.maxReplies { replies.append(reply) }
            if records.count < Self.maxKept { records.append(record) }
            guard let audio = record.audio else { return }
            try Base64Text(text.bytes, audio.data).decode { _ in }
        } catch let found as RecordError {
            fault = "record \(count): \(found.reason)"
            text.goBack(to: start)
            try text.value()
        }
    }
}
