// A record from the wire, checked against the ground truth.
internal import Host
internal import Records

/// One element of `data`.
struct WireRecord {
    var id: String
    var stream: String
    /// Everything except its timestamps, which may be corrected.
    var content: WireJSON
    /// Its timestamps in member order: when it happened, and the span in an event's detail.
    let dates: RecordDates
    /// A hash of all of it, including its timestamps.
    var form: UInt64
    /// The serial number of a source's record; nil for events of the program.
    var serial: Int?
    /// The segments of an audio chunk.
    var segments: [Int] = []
    /// The number of them that it shares with the previous chunk.
    var sharedSegments = 0
    /// The dates of an effort record.
    var effort: EffortDates?

    /// Parses a record; throws a Violation if it differs from the source's.
    init(_ json: WireJSON, _ stream: String, _ truth: Truth) throws {
        guard case .object(let members) = json, let id = json["id"]?.text else {
            throw Violation("record", "no id in \(json)")
        }
        self.id = id
        self.stream = stream
        form = json.fingerprint
        var dates = ["timestamp", "clock", "timestamp_start", "timestamp_end"]
        if stream == "waypost_surveys" { dates += ["start", "end"] }
        if stream == "waypost_effort" { dates += ["from", "to"] }
        if stream == "waypost_health" { dates += ["oldest_pending_at", "next_sync_at"] }
        self.dates = RecordDates(json)
        content = .object(
            members.filter { !dates.contains($0.key) }.map { key, value in
                (key, key == "detail" ? RecordDates.removed(from: value) : value)
            }
        )
        switch stream {
        case "linux_alsa_audio": try readAudio(json, truth)
        default: try readPlain(json, truth)
        }
    }

    // MARK: Records with a serial number

    private mutating func readPlain(_ json: WireJSON, _ truth: Truth) throws {
        serial = Self.serial(of: json, stream)
        guard let serial else {
            // The program's own events and effort.
            if stream == "waypost_events" { return }
            if stream == "waypost_effort" { return effort = try Self.readEffort(json) }
            throw Violation("record", "no serial number in \(stream): \(json)")
        }
        guard truth.records.indices.contains(serial) else {
            throw Violation("invented", "record \(serial) of \(stream) was never made")
        }
        let known = truth.records[serial]
        if known.beacon >= 0 { try checkBeacon(json, truth.identities[known.beacon]) }
        if known.stream == Stream.location.number { try checkPlace(json, serial) }
        guard Self.isWhole(json, serial) else {
            throw Violation("values", "part of record \(serial) of \(stream) is not what it was")
        }
        if known.given == .min { return }
        if let given = known.given {
            guard Self.time(json["timestamp"]) == given else {
                throw Violation(
                    "date",
                    "record \(serial) is not dated as its program said: \(json)"
                )
            }
            return
        }
        // The oldest pending record of a simulated health record is as old as itself.
        let dates = stream == "waypost_health" ? ["timestamp", "oldest_pending_at"] : ["timestamp"]
        for date in dates {
            try Self.checkDate(
                json,
                at: date,
                (known.boot, known.boottime, known.wall, known.truth),
                truth
            )
        }
    }

    private static func readEffort(_ json: WireJSON) throws -> EffortDates {
        let states = ["recorded", "scheduled_off", "failed", "off", "unknown"]
        guard let state = json["state"]?.text, states.contains(state), json["source"] != nil,
            let from = time(json["from"]), let to = time(json["to"]),
            let clock = json["clock"]?.text,
            from == time(json["timestamp"]), (json["reason"] != nil) == (state != "recorded")
        else { throw Violation("effort", "not what an effort record should be: \(json)") }
        return EffortDates(from: from, to: to, isDated: clock != "unsynced")
    }

    private static func serial(of json: WireJSON, _ stream: String) -> Int? {
        switch stream {
        case "linux_bluez_beacons": return json["data"]?.text.flatMap { Serial.read(hex: $0) }
        case "linux_gpsd_location":
            // No other records are so near to the equator.
            return json["latitude"]?.number.map { Int(($0 * 1e7).rounded()) }
                .flatMap { $0 < 100_000_000 ? $0 : nil }
        case "waypost_events": return json["detail"]?["n"]?.integer
        case "waypost_health": return json["pending"]?["n"]?.integer
        case "waypost_replies":
            return json["job"]?.text.flatMap { Int($0) }
                .map { $0 + JobReply.place(json["state"]?.text ?? "") }
        case "waypost_effort": return nil
        default: return json["n"]?.integer
        }
    }

    /// Returns whether its padding is complete.
    private static func isWhole(_ json: WireJSON, _ serial: Int) -> Bool {
        if let data = json["data"]?.text { return Serial.isFilled(serial, hex: data) }
        return json["text"]?.text.map { Serial.isFilled(serial, text: $0) } ?? true
    }

    private func checkBeacon(_ json: WireJSON, _ identity: BeaconIdentity) throws {
        let isIt =
            json["kind"]?.text == identity.kind.name
            && json["beacon_id"]?.text ?? "" == identity.beaconID
            && json["address"]?.text == identity.address.description
            && json["address_type"]?.text == identity.addressType.name
            && json["tx_power"]?.integer == identity.txPower
        guard isIt else {
            throw Violation("other beacon", "heard from \(identity), came as \(json)")
        }
    }

    private func checkPlace(_ json: WireJSON, _ serial: Int) throws {
        guard json["longitude"]?.number.map({ Int(($0 * 1e7).rounded()) }) == serial * 2 else {
            throw Violation("values", "a place that was not: \(json)")
        }
    }

    // MARK: Timestamps

    static func time(_ value: WireJSON?) -> Int64? {
        value?.text.flatMap { WallTime(rfc3339: $0)?.milliseconds }
    }

    private typealias Moment = (boot: Int, boottime: Int64, wall: Int64, truth: Int64)

    private static func checkDate(
        _ json: WireJSON,
        at key: String,
        _ moment: Moment,
        _ truth: Truth
    ) throws {
        guard let time = time(json[key]), let clock = json["clock"]?.text else {
            throw Violation("date", "no date in \(json)")
        }
        if clock == "unsynced" {
            // The start of a survey may be in another boot, whose clock was never set.
            if json["start"] != nil, truth.bound(moment.boot, moment.boottime) != nil { return }
            guard time == moment.wall else {
                throw Violation("date", "not as the clock was (\(moment.wall)): \(json)")
            }
            return
        }
        let bound = truth.bound(moment.boot, moment.boottime)
        guard let bound, abs(time - moment.truth) <= bound else {
            throw Violation(
                "date",
                "off by \(time - moment.truth) ms, allowed \(String(describing: bound)): \(json)"
            )
        }
    }

    // MARK: Audio

    private mutating func readAudio(_ json: WireJSON, _ truth: Truth) throws {
        guard let text = json["audio_data"]?.text, let file = Base64Text.decode(text) else {
            throw Violation("sound", "no sound in \(json)")
        }
        var rest = file.dropFirst(44)
        var frames = 0
        while !rest.isEmpty {
            guard let serial = Serial.read(rest), truth.segments.indices.contains(serial) else {
                throw Violation("sound", "bytes that nobody recorded")
            }
            let bytes = truth.segments[serial].frames * 2
            guard Serial.isFilled(serial, rest.prefix(bytes)) else {
                throw Violation("values", "part of segment \(serial) is not what it was")
            }
            segments.append(serial)
            frames += truth.segments[serial].frames
            rest = rest.dropFirst(bytes)
        }
        try checkRun(truth)
        try checkTimes(json, frames, truth)
    }

    private func checkRun(_ truth: Truth) throws {
        for (left, right) in zip(segments, segments.dropFirst()) {
            let (before, after) = (truth.segments[left], truth.segments[right])
            guard before.run == after.run, before.index + 1 == after.index else {
                throw Violation("hole", "a chunk has \(before) and then \(after)")
            }
        }
    }

    private mutating func checkTimes(_ json: WireJSON, _ frames: Int, _ truth: Truth) throws {
        guard let first = segments.first.map({ truth.segments[$0] }),
            let rate = json["sample_rate"]?.integer, let duration = json["duration"]?.number,
            let overlap = json["overlap_duration"]?.number
        else { throw Violation("sound", "an empty chunk") }
        guard abs(duration - Double(frames) / Double(rate)) < 0.002 else {
            throw Violation("sound", "\(frames) frames, \(duration) s")
        }
        var shared = Int((overlap * Double(rate)).rounded())
        while shared > 0, sharedSegments < segments.count {
            shared -= truth.segments[segments[sharedSegments]].frames
            sharedSegments += 1
        }
        guard shared == 0, sharedSegments < segments.count else {
            throw Violation("sound", "an overlap of \(overlap) s in \(segments.count) segments")
        }
        let moment = (first.boot, first.boottime, first.wall, first.truth)
        try Self.checkDate(json, at: "timestamp_start", moment, truth)
        guard let start = Self.time(json["timestamp_start"]),
            let end = Self.time(json["timestamp_end"]),
            abs(Double(end - start) - duration * 1000) <= duration * 50 + 2
        else { throw Violation("date", "a chunk of \(duration) s that ends when it should not") }
    }
}

/// Decodes base64 (RFC 4648).
enum Base64Text {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    static func decode(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (bits, count): (UInt32, Int) = (0, 0)
        for character in text.utf8 where character != UInt8(ascii: "=") {
            let value = values[Int(character)]
            guard value < 64 else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bytes
    }

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(bytes.count, start + 3)]
            let bits = (0..<3).reduce(UInt32(0)) { sum, place in
                sum << 8 | (start + place < bytes.count ? UInt32(bytes[start + place]) : 0)
            }
            for place in 0..<4 {
                let isPadding = place > group.count
                text.append(
                    isPadding
                        ? UInt8(ascii: "=") : alphabet[Int(bits >> UInt32(18 - place * 6) & 63)]
                )
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
