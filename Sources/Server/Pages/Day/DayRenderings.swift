// Answers requests about one device's day.
import Host
import ServerArchive
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    /// The maximum number of streams whose files are read for one page.
    private static let maxContents = 24
    /// Bytes of a day's effort records that are read.
    private static let maxEffort: Int64 = 1 << 20

    func answer(
        _ head: RequestHead,
        _ day: Day,
        _ id: String,
        _ part: DayRoute,
        _ now: Int64
    ) throws -> HTTPAnswer {
        guard try Contacts.read(directory: directory, device: id) != nil else { throw Self.nothing }
        switch part {
        case .whole:
            let page = try page(day, of: id, at: now)
            return HTTPAnswer(page: page.html(), tiles: page.hasTrack ? libraries.tiles : nil)
        case .stream(let stream):
            if isName(stream), let time = head.query["at"].flatMap({ Int64($0) }) {
                return try sound(stream, at: time, of: id, on: day)
            }
            guard let page = try records(stream, of: id, on: day, head.query) else {
                return try gpx(stream, of: id, on: day)
            }
            return HTTPAnswer(page: page.html(now: now))
        case .sound(let stream, let name):
            return try sound(stream, name, of: id, on: day, head, at: now)
        }
    }

    /// Returns the page of a stream's records, nil without any.
    private func records(
        _ stream: String,
        of id: String,
        on day: Day,
        _ query: [String: String]
    ) throws -> RecordsPage? {
        guard isName(stream) else { return nil }
        return try RecordsPage(
            path(stream, day, id),
            device: id,
            day: day,
            stream: stream,
            known,
            sound: RecordsPage.isOfAudio(stream) ? try soundStream(of: id, on: day) : nil,
            RecordsPage.Request(query)
        )
    }

    /// Returns the first stream with audio on a day, nil without one.
    private func soundStream(of id: String, on day: Day) throws -> String? {
        guard case (let reader?, _) = fleet.openIndex() else { return nil }
        let slots = try reader.slots(of: id, on: day)
        return try reader.contents(of: id).filter { $0.value == .audio && slots[$0.key] != nil }
            .keys.min()
    }

    /// Redirects to the chunk of a point in time, or to the one before it.
    private func sound(_ stream: String, at time: Int64, of id: String, on day: Day) throws
        -> HTTPAnswer
    {
        let time = min(max(time, day.start), day.end - 1)
        guard let (chunk, day) = try chunk(stream, at: time, of: id, on: day) else {
            throw HTTPError(status: 404, reason: "No sound on \(day.name).")
        }
        let hour = (chunk.start - day.start) / 3_600_000
        let name = hour < 10 ? "0\(hour)" : "\(hour)"
        let path = "/device/\(id)/\(day.name)/\(stream)/\(name)"
        return HTTPAnswer(seeOther: "\(path)?at=\(time)#\(chunk.file)")
    }

    /// Returns the chunk, and the day on which it begins.
    private func chunk(_ stream: String, at time: Int64, of id: String, on day: Day) throws
        -> (AudioChunk, Day)?
    {
        let chunk = try AudioDay(path(stream, day, id)).chunk(at: time, of: day)
        if let chunk, chunk.start <= time { return (chunk, day) }
        // One that began before midnight may have the day's first seconds.
        let date = WallTime(milliseconds: day.start - 1).rfc3339.prefix(10)
        if let before = Day(String(date)),
            let last = try AudioDay(path(stream, before, id)).chunk(at: time, of: before),
            last.end > time
        {
            return (last, before)
        }
        return chunk.map { ($0, day) }
    }

    private func page(_ day: Day, of id: String, at now: Int64) throws -> DayPage {
        let (reader, note) = fleet.openIndex()
        let days = try reader?.days(of: id).map(\.name) ?? []
        let slots = try reader?.slots(of: id, on: day) ?? [:]
        let losses =
            try LossSpan.spans(reader?.losses(of: id, around: day) ?? [], now: now)
            + effort(path("waypost_effort", day, id))
        var parts: [DayPage.Part] = []
        let shown = try reader?.contents(of: id).filter { slots[$0.key] != nil } ?? [:]
        for (stream, content) in shown.sorted(by: { $0.key < $1.key }).prefix(Self.maxContents) {
            let file = path(stream, day, id)
            func add(_ content: DayPage.Content) {
                parts.append(DayPage.Part(stream: stream, content: content))
            }
            if content == .audio { add(.sound(try AudioDay(file))) }
            if content == .positions { add(.track(try Track(file))) }
            guard content.hasReadings, let reader else { continue }
            add(.readings(try reader.readings(of: id, stream, on: day)))
        }
        return DayPage(
            device: id,
            names: known,
            isEditor: isEditor,
            day: day,
            before: days.first { $0 < day.name },
            after: days.last { $0 > day.name },
            timeline: Timeline(day: day, streams: slots, losses: losses, now: now),
            parts: parts,
            now: now,
            note: note,
            libraries: libraries
        )
    }

    /// Reads when sources were not listening, as the device reports it (waypost-protocol(7)).
    private func effort(_ path: String) throws -> [LossSpan] {
        guard let file = try LineFile.open(path) else { return [] }
        var spans: [LossSpan] = []
        try file.forEachLine(from: 0, to: min(try file.size(), Self.maxEffort)) { line in
            if let span = line.flatMap(LossSpan.init(effort:)) { spans.append(span) }
        }
        return spans
    }

    /// Returns the path of a stream's record file of a day; names are plain.
    private func path(_ stream: String, _ day: Day, _ id: String) -> String {
        ArchiveFile.path(in: "\(directory)/\(ArchiveFile.folder(stream, day.name, id))")
    }

    /// Answers a download of a day's track: `STREAM.gpx`.
    private func gpx(_ name: String, of id: String, on day: Day) throws -> HTTPAnswer {
        let stream = String(name.dropLast(4))
        guard name.hasSuffix(".gpx"), isName(stream) else { throw Self.nothing }
        let track = try Track(path(stream, day, id))
        guard track.fixes > 0 else { throw Self.nothing }
        var answer = HTTPAnswer(
            200,
            type: "application/gpx+xml",
            track.gpx(name: "\(id) \(day.name)"),
            cache: "no-store"
        )
        let name = "attachment; filename=\"\(id)-\(day.name).gpx\""
        answer.headers.append(("Content-Disposition", name))
        return answer
    }

    /// Answers an hour of a stream's audio (`07`) or an audio file.
    func sound(
        _ stream: String,
        _ name: String,
        of id: String,
        on day: Day,
        _ head: RequestHead,
        at now: Int64
    ) throws -> HTTPAnswer {
        if name.utf8.count == 2, let hour = Int(name), (0..<24).contains(hour) {
            let chunks = try AudioDay(path(stream, day, id)).chunks(in: hour, of: day)
            guard !chunks.isEmpty else { throw Self.nothing }
            let page = AudioPage(
                device: id,
                names: known,
                day: day,
                stream: stream,
                hour: hour,
                chunks: chunks,
                now: now
            )
            return HTTPAnswer(page: page.html())
        }
        guard AudioChunk.isFile(name) else { throw Self.nothing }
        let file = "\(directory)/\(ArchiveFile.audioFolder(stream, day.name, id))/\(name)"
        return try HTTPAnswer(soundFile: file, head.fields[.range])
    }
}
