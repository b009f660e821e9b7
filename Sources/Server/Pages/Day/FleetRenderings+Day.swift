// Answers requests about one device's days.
import Host
import ServerArchive
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    func answer(
        _ head: RequestHead,
        _ days: DaySpan,
        _ id: String,
        _ part: DayRoute,
        _ now: Int64
    ) throws -> HTTPAnswer {
        guard try Contacts.read(directory: directory, device: id) != nil else { throw Self.nothing }
        let day = days.first
        switch part {
        case .whole:
            if let chosen = try chosen(days, of: id, head.query) { return chosen }
            let page = try page(days, of: id, ZoneChoice(head.query), at: now)
            return HTTPAnswer(page: page.html(), tiles: page.hasTrack ? libraries.tiles : nil)
        case .stream(let stream):
            if isName(stream), let time = head.query["at"].flatMap({ Int64($0) }) {
                return try sound(stream, at: time, of: id, on: day, head.query)
            }
            guard days.count == 1, let page = try records(stream, of: id, on: day, head.query)
            else { return try gpx(stream, of: id, days, head.query) }
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
        let cells = try reader.cells(of: id, in: day.start..<day.end, step: 144)
        return try reader.contents(of: id).filter { $0.value == .audio && cells[$0.key] != nil }
            .keys.min()
    }

    /// Redirects to the chunk of a point in time, or to the one before it.
    private func sound(
        _ stream: String,
        at time: Int64,
        of id: String,
        on day: Day,
        _ query: [String: String]
    ) throws -> HTTPAnswer {
        let time = min(max(time, day.start), day.end - 1)
        guard let (chunk, day) = try chunk(stream, at: time, of: id, on: day) else {
            throw HTTPError(status: 404, reason: "No sound on \(day.name).")
        }
        let name = Words.twoDigits((chunk.start - day.start) / 3_600_000)
        let path = "/device/\(id)/\(day.name)/\(stream)/\(name)"
        let zone = query["zone"].map { "&zone=\(FormField.written($0))" } ?? ""
        return HTTPAnswer(seeOther: "\(path)?at=\(time)\(zone)#\(chunk.file)")
    }

    /// Returns the chunk, and the day on which it begins.
    private func chunk(_ stream: String, at time: Int64, of id: String, on day: Day) throws
        -> (AudioChunk, Day)?
    {
        let chunk = try AudioDay(path(stream, day, id)).chunk(at: time, of: day)
        if let chunk, chunk.start <= time { return (chunk, day) }
        // One that began before midnight may have the day's first seconds.
        let before = Day(of: day.start - 1)
        if let last = try AudioDay(path(stream, before, id)).chunk(at: time, of: before),
            last.end > time
        {
            return (last, before)
        }
        return chunk.map { ($0, day) }
    }

    /// Returns the path of a stream's record file of a day; names are plain.
    func path(_ stream: String, _ day: Day, _ id: String) -> String {
        ArchiveFile.path(in: "\(directory)/\(ArchiveFile.folder(stream, day.name, id))")
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
            let choice = ZoneChoice(head.query)
            let page = AudioPage(
                device: id,
                names: known,
                day: day,
                stream: stream,
                hour: hour,
                chunks: chunks,
                now: now,
                zone: choice.isChosen ? choice.zone : nil
            )
            return HTTPAnswer(page: page.html())
        }
        guard AudioChunk.isFile(name) else { throw Self.nothing }
        let file = "\(directory)/\(ArchiveFile.audioFolder(stream, day.name, id))/\(name)"
        return try HTTPAnswer(soundFile: file, head.fields[.range])
    }
}
