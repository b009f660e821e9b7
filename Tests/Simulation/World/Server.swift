// The server of a simulated world: behaves well or badly, keeps everything, and checks what it
// receives.
internal import Host
internal import HTTP
internal import Queue
internal import Records
internal import Upload

/// The server, shared by all devices.
final class Server {
    /// A stored record.
    private struct Entry: Equatable {
        /// A hash of everything except its timestamps.
        var content: UInt64
        var dates: RecordDates
        var stream: String
        /// The number of its device.
        var device: Int
    }

    var mode = ServerMode.good
    /// Parameter of the mode: the record limit, or which serial numbers are poison.
    var limit = 2
    /// It says that it takes columns, and does; nil: it never heard of them.
    private(set) var takesColumns: Bool?
    /// Parameter of `chokes`: the serial numbers.
    var choking: Set<Int> = []
    /// Checks the guarantees about keys and parts.
    var sent = SentBatches()
    var chance: Chance
    /// Serial numbers of stored records and audio segments.
    private(set) var serials: Set<Int> = []
    private(set) var segments: Set<Int> = []
    private var entries: [String: Entry] = [:]
    /// The dates of effort records, as they first came.
    private(set) var effort: [String: EffortDates] = [:]
    private var idOfSerial: [Int: String] = [:]
    /// The chunk of each segment that is not shared with an earlier chunk.
    private(set) var chunkOfSegment: [Int: String] = [:]
    /// A hash of the body of each key.
    private var bodies: [String: UInt64] = [:]
    /// Audio that was in no chunk when its device was copied: each copy makes a chunk of it.
    var endsOfCopies: Set<Int> = []
    private var longAnswers: [Int: Answer] = [:]
    private(set) var isGarbled = false
    /// The request is in columns.
    private var isColumns = false
    /// Refusals of each record that was alone in its batch, over all devices; a chunk by its last
    /// segment, negative.
    private var refusals: [Int: Int] = [:]
    /// Records that were too large alone.
    private var tooLarge: Set<Int> = []
    private var busy: Set<String> = []
    private(set) var requests = 0
    /// A log of the devices' requests.
    var log: ((String) -> Void)?

    init(_ seed: UInt64, knowsColumns: Bool = false) {
        chance = Chance(seed)
        takesColumns = knowsColumns ? true : nil
    }

    /// Becomes another version, which takes columns or does not.
    func changeVersion() { takesColumns = takesColumns.map { !$0 } }

    /// The number of stored ids, over all devices.
    var storedIDs: Int { entries.count }

    func has(id: String) -> Bool { entries[id] != nil }

    /// Returns whether a device may stop sending a record.
    func hasRefused(_ serial: Int, _ attempts: Int) -> Bool {
        tooLarge.contains(serial) || refusals[serial] ?? 0 >= attempts
    }

    /// Returns whether a device may stop sending a chunk, by its last segment.
    func hasRefused(segment: Int, _ attempts: Int) -> Bool { hasRefused(-1 - segment, attempts) }

    // MARK: Requests

    /// Handles one request; returns nil for no answer.
    ///
    /// Throws a Violation for a request that a gateway must not send.
    func post(_ body: [UInt8], key: String, _ truth: Truth, from device: any AccountHolder) throws
        -> Answer?
    {
        requests += 1
        let records: [WireRecord]
        do {
            records = try check(body, key, truth)
            try checkOverlaps(records, device, truth)
        } catch let violation as Violation {
            guard device.account.isGarbled else { throw violation }
            log?("  garbled: \(violation)")
            return Answer(status: mode == .refusesAll ? 400 : 200)
        }
        // A batch may be remade with better dates only if no byte of it was sent. After a failed
        // sync that is unknown.
        if mode != .stalls, !device.account.isGarbled, !device.account.hasFailedSync {
            try sent.record(key, records, device.number)
        }
        log?(
            "  request \(key.prefix(8)) of \(device.number): \(records.count) \(records[0].stream), \(mode)"
        )
        if isColumns {
            guard let takesColumns else {
                throw Violation("columns", "batch \(key) came in columns that nobody asked for")
            }
            if !takesColumns { return Answer(status: 415) }
        }
        switch mode {
        case .good: return accept(records, device)
        case .echoes: return accept(records, device, isLong: true)
        case .saysDuplicates: return accept(records, device, isKnown: true)
        case .losesAnswers:
            let answer = accept(records, device)
            guard chance.isOne(in: 2) else { return answer }
            device.account.ambiguous.formUnion(records.compactMap(\.serial))
            return nil
        case .losesRequests: return chance.isOne(in: 2) ? nil : accept(records, device)
        case .stalls: return nil
        case .poison:
            if records.contains(where: isPoison) {
                return refuse(records, Answer(status: 422, body: Array("{}".utf8)))
            }
            return accept(records, device)
        case .refusesAll: return refuse(records, Answer(status: 400))
        case .tooLarge:
            return records.count > limit
                ? refuse(records, Answer(status: 413)) : accept(records, device)
        case .failing: return Answer(status: 503)
        case .tokenRefused: return Answer(status: 401)
        case .wrongEndpoint: return Answer(status: 404)
        case .chokes:
            let chokes = records.contains { $0.serial.map(choking.contains) ?? false }
            return chokes ? Answer(status: 500) : accept(records, device)
        case .busyFirst:
            return busy.insert(key).inserted ? Answer(status: 409) : accept(records, device)
        case .table: return answer(records, device)
        }
    }

    /// Returns an answer of waypost-protocol(7), ANSWERS.
    private func answer(_ records: [WireRecord], _ device: any AccountHolder) -> Answer {
        let row = chance.one(of: TableAnswer.all(records: records.count))
        log?("  answers \(row.status) \(row.body)")
        switch row.meaning {
        case .stored: _ = accept(records, device)
        case .refused, .tooLarge: return refuse(records, row.answer)
        case .unjudged: break
        }
        return row.answer
    }

    /// Counts records that were refused alone; the others get a verdict once they are alone.
    private func refuse(_ records: [WireRecord], _ answer: Answer) -> Answer {
        let first = records[0]
        guard records.count == 1, let serial = first.serial ?? first.segments.last.map({ -1 - $0 })
        else { return answer }
        if answer.status == 413 {
            tooLarge.insert(serial)
        } else {
            refusals[serial, default: 0] += 1
        }
        return answer
    }

    /// Checks that a chunk shares with the previous one, if it is here, as many segments as its run
    /// defines; none if chunks were evicted, because the previous one may be among them.
    private func checkOverlaps(
        _ records: [WireRecord],
        _ device: any AccountHolder,
        _ truth: Truth
    ) throws {
        let account = device.account
        guard !account.isDamaged, !account.wasSetAside, !account.wasLate, !account.hasFailedSync,
            !account.hasFailedWrite
        else { return }
        for record in records where !record.segments.isEmpty {
            let own = truth.segments[record.segments[record.sharedSegments]]
            let before = truth.segments.lastIndex { $0.run == own.run && $0.index == own.index - 1 }
            guard let before, segments.contains(before) else { continue }
            guard record.sharedSegments != own.overlap else { continue }
            let figures = (device as? Device)?.queue?.statistics(dated: false) ?? []
            let hasEvicted = figures.contains { $0.stream == .audio && $0.evicted > 0 }
            guard record.sharedSegments == 0, hasEvicted else {
                throw Violation(
                    "overlap",
                    "\(record.id) shares \(record.sharedSegments) segments, not \(own.overlap)"
                )
            }
        }
    }

    private func accept(
        _ records: [WireRecord],
        _ device: any AccountHolder,
        isLong: Bool = false,
        isKnown: Bool = false
    ) -> Answer {
        let duplicates = store(records, device)
        device.account.acknowledged.formUnion(records.compactMap(\.serial))
        // A disk that failed may not store the answer.
        if device.account.isLate || device.account.hasFailedSync {
            device.account.ambiguous.formUnion(records.compactMap(\.serial))
        }
        let count = isKnown ? records.count : duplicates
        guard isLong else { return accepted(count, ids: 0) }
        let answer = longAnswers[count] ?? accepted(count, ids: 1_100_000)
        longAnswers[count] = answer
        return answer
    }

    private func accepted(_ duplicates: Int, ids: Int) -> Answer {
        let columns = takesColumns == true ? ",\"columns\":1" : ""
        let ids = [UInt8](repeating: UInt8(ascii: "x"), count: ids)
        return Answer(
            status: 200,
            contentType: "application/json",
            body: Array("{\"ids\":\"".utf8) + ids
                + Array("\",\"duplicates\":\(duplicates)\(columns)}".utf8)
        )
    }

    private func isPoison(_ record: WireRecord) -> Bool {
        guard let serial = record.serial ?? record.segments.first else { return false }
        return serial % 7 == limit % 7
    }

    // MARK: Checks

    private func check(_ body: [UInt8], _ key: String, _ truth: Truth) throws -> [WireRecord] {
        let print = Fingerprint.of(body)
        if let before = bodies[key], before != print {
            throw Violation("same bytes", "batch \(key) came with other bytes at another try")
        }
        bodies[key] = print
        let json = WireJSON(body)
        isColumns = json?["columns"] != nil
        guard let json, let data = isColumns ? json["columns"]?.rows : json["data"]?.list,
            let stream = json["stream_name"]?.text, let metadata = json["batch_metadata"]
        else {
            throw Violation(
                "body",
                "not what a body should be: \(String(decoding: body.prefix(300), as: UTF8.self))"
            )
        }
        guard metadata["total_records"]?.integer == data.count, !data.isEmpty else {
            throw Violation(
                "body",
                "\(data.count) records, and total_records \(String(describing: metadata["total_records"]))"
            )
        }
        guard metadata["batch_id"]?.text == key else {
            throw Violation("body", "batch \(key) says it is another")
        }
        return try data.map { try WireRecord($0, stream, truth) }
    }

    /// Stores new records; returns how many were there already.
    private func store(_ records: [WireRecord], _ device: any AccountHolder) -> Int {
        // A record that one device garbled may be intact on its copy.
        isGarbled = isGarbled || device.account.isGarbled
        defer { if isGarbled { found = nil } }
        var duplicates = 0
        for record in records where !store(record, device) { duplicates += 1 }
        return duplicates
    }

    private func store(_ record: WireRecord, _ device: any AccountHolder) -> Bool {
        if let entry = entries[record.id] {
            // An Opus chunk begins with part of the previous segment, which damage can remove.
            let isStranger = record.stream == "linux_alsa_audio" && record.segments.isEmpty
            // If a device and its copy both lose their WALs, each makes a chunk of the audio that
            // was in none, under the next number.
            let isEnd =
                entry.device != device.number && !record.segments.isEmpty
                && endsOfCopies.isSuperset(of: record.segments)
            if isEnd, device.account.isDamaged { segments.formUnion(record.segments) }
            // A disk that was rolled back has the beginning of what became that chunk.
            let isBeginning =
                !record.segments.isEmpty && endsOfCopies.isSuperset(of: record.segments)
                && record.segments.allSatisfy { chunkOfSegment[$0] == record.id }
            let mayDiffer = (isStranger || isEnd) && device.account.isDamaged || isBeginning
            if entry.content != record.content.fingerprint && !mayDiffer
                || entry.stream != record.stream
            {
                found =
                    found
                    ?? Violation(
                        "id used twice",
                        "\(record.id) of \(record.stream) is \(record.content), and was another of \(entry.stream)"
                    )
            }
            if !record.dates.mayFollow(entry.dates) {
                found =
                    found
                    ?? Violation(
                        "dates of one event",
                        "\(record.id) of \(record.stream) has \(record.dates), and had \(entry.dates)"
                    )
            }
            return false
        }
        if let dates = record.effort { effort[EffortAudit.key(record.id)] = dates }
        entries[record.id] = Entry(
            content: record.content.fingerprint,
            dates: record.dates,
            stream: record.stream,
            device: device.number
        )
        if let serial = record.serial {
            if let other = idOfSerial[serial] {
                found =
                    found
                    ?? Violation(
                        "record twice",
                        "record \(serial) of \(record.stream) came as \(other) and as \(record.id)"
                    )
            }
            idOfSerial[serial] = record.id
            serials.insert(serial)
        }
        for segment in record.segments.dropFirst(record.sharedSegments) {
            if let other = chunkOfSegment[segment], !endsOfCopies.contains(segment) {
                found =
                    found
                    ?? Violation(
                        "sound twice",
                        "segment \(segment) is in \(other) and in \(record.id)"
                    )
            }
            chunkOfSegment[segment] = record.id
        }
        segments.formUnion(record.segments)
        return true
    }

    /// A violation found while records were stored.
    private(set) var found: Violation?
}
