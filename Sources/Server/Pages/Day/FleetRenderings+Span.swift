// Reads what a page of days shows, and the track of days as a file.
import Host
import SQLite
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    /// The maximum number of streams whose data are read for one page.
    private static let maxContents = 24
    /// Bytes of effort records that are read of one day, and of all.
    private static let (maxDayEffort, maxEffort): (Int64, Int64) = (1 << 20, 16 << 20)

    /// Answers the form of a page of days: leads to the address of the days and the zone; nil if
    /// the query has no form.
    func chosen(_ days: DaySpan, of id: String, _ query: [String: String]) throws -> HTTPAnswer? {
        let offset = query["offset"] ?? ""
        guard query["from"] != nil || query["to"] != nil || !offset.isEmpty else { return nil }
        guard let first = Day(query["from"] ?? days.first.name),
            let last = Day(query["to"] ?? days.last.name), let chosen = DaySpan(first, last)
        else {
            let reason = "Two dates are needed, such as 2026-10-05, at most 366 days in all."
            throw HTTPError(status: 400, reason: reason)
        }
        let zone = String((offset.isEmpty ? query["zone"] ?? "" : offset).prefix(64))
        let end = zone.isEmpty ? "" : "?zone=\(FormField.written(zone))"
        return HTTPAnswer(seeOther: "/device/\(id)/\(chosen.name)\(end)")
    }

    func page(_ days: DaySpan, of id: String, _ choice: ZoneChoice, at now: Int64) throws
        -> SpanPage
    {
        let span = try span(days, choice.zone)
        let (reader, note) = fleet.openIndex()
        let latest = try reader?.latest(of: id) ?? [:]
        let cells = try reader?.cells(of: id, in: span.time, step: span.step) ?? [:]
        let events = try reader?.losses(of: id, around: span.time) ?? []
        let dates = try reader?.days(of: id).compactMap { Day($0.name) } ?? []
        let effort = try effort(of: id, in: span.time)
        let losses = LossSpan.spans(events, now: now) + effort.spans
        let parts =
            try reader.map { try self.parts(of: id, span, latest, Set(cells.keys), $0) } ?? []
        let longitude = Vitals(latest).place?.longitude
        return SpanPage(
            device: id,
            names: known,
            isEditor: isEditor,
            span: span,
            choice: choice,
            site: longitude.map(ZoneChoice.offset),
            known: dates.last.map {
                (span.zone.day(of: $0.start), span.zone.day(of: dates[0].end - 1))
            },
            timeline: Timeline(span: span, streams: cells, losses: losses, now: now),
            parts: parts,
            absent: try absentSound(of: id, effort.sound, parts, span),
            detections: try reader?.detections(
                of: id,
                from: Day(of: span.time.lowerBound),
                to: Day(of: span.time.upperBound - 1)
            ) ?? [:],
            now: now,
            note: note
                ?? (events.count < FleetReader.maxLosses && !effort.isCut
                    ? nil : "Not all gaps are shown."),
            libraries: libraries
        )
    }

    private func span(_ days: DaySpan, _ zone: TimeZoneRules) throws -> LocalSpan {
        guard let span = LocalSpan(days, zone) else {
            let reason = "\(zone.title) skipped \(days.name), when it crossed the date line."
            throw HTTPError(status: 404, reason: reason)
        }
        return span
    }

    /// Returns the data of the streams that have records.
    private func parts(
        of id: String,
        _ span: LocalSpan,
        _ latest: [String: (time: Int64, line: String)],
        _ streams: Set<String>,
        _ reader: FleetReader
    ) throws -> [SpanPage.Part] {
        let contents = DeviceFacts(latest: latest).contents.filter { streams.contains($0.key) }
        var parts: [SpanPage.Part] = []
        for (stream, content) in contents.sorted(by: { $0.key < $1.key }).prefix(Self.maxContents) {
            func add(_ content: SpanPage.Content) {
                parts.append(SpanPage.Part(stream: stream, content: content))
            }
            if content == .audio { add(.sound(try reader.sound(of: id, stream, in: span.time))) }
            if content == .positions { add(.track(try track(of: id, stream, span, reader))) }
            guard content.hasReadings else { continue }
            add(.readings(try reader.readings(of: id, stream, in: span.time)))
        }
        return parts
    }

    /// Reads when sources were not listening and when sound was recorded, as the device reports it
    /// (waypost-protocol(7)), the newest days first; `isCut`: not all of it was read.
    private func effort(of id: String, in time: Range<Int64>) throws -> (
        spans: [LossSpan], sound: [Range<Int64>], isCut: Bool
    ) {
        var (spans, budget, isCut): ([LossSpan], Int64, Bool) = ([], Self.maxEffort, false)
        var sound: [Range<Int64>] = []
        var day = Day(of: time.upperBound - 1)
        // One that began on the day before may last until the first one.
        while day.end > time.lowerBound - Day.milliseconds {
            if let file = try LineFile.open(path("waypost_effort", day, id)) {
                let size = try file.size()
                let end = min(size, Self.maxDayEffort, budget)
                isCut = isCut || end < size
                budget -= end
                try file.forEachLine(from: 0, to: end) { line in
                    if let span = line?.recordedSound, span.overlaps(time) { sound.append(span) }
                    guard let span = line.flatMap(LossSpan.init(effort:)),
                        span.to >= time.lowerBound, span.from < time.upperBound
                    else { return }
                    spans.append(span)
                }
            }
            guard let before = day.adding(-1) else { break }
            day = before
        }
        return (spans, sound, isCut)
    }

    // MARK: The track

    /// Reads all fixes, or of very many a part of each ten minutes.
    private func track(of id: String, _ stream: String, _ span: LocalSpan, _ reader: FleetReader)
        throws -> Track
    {
        let time = TimeSpan(from: span.time.lowerBound, to: span.time.upperBound)
        let files = try reader.files(of: id, time, [stream], maximum: DaySpan.maxDays + 2)
        return try Track(
            files.flatMap {
                try reader.extents(of: $0, "\(directory)/\($0.path(of: id))", in: span.time)
            }
        )
    }

    /// Answers a download of a track: `STREAM.gpx`.
    func gpx(_ name: String, of id: String, _ days: DaySpan, _ query: [String: String]) throws
        -> HTTPAnswer
    {
        let stream = String(name.dropLast(4))
        guard name.hasSuffix(".gpx"), isName(stream),
            case (let reader?, _) = fleet.openIndex()
        else { throw Self.nothing }
        let span = try span(days, ZoneChoice(query).zone)
        let track = try track(of: id, stream, span, reader)
        guard track.fixes > 0 else { throw Self.nothing }
        return HTTPAnswer(
            download: "\(id)-\(days.name).gpx",
            type: "application/gpx+xml",
            track.gpx(name: "\(id) \(days.name)")
        )
    }
}

extension FleetReader {
    /// Returns the bytes of each ten minutes of a file in a span of time.
    fileprivate func extents(of file: IndexedFile, _ path: String, in time: Range<Int64>) throws
        -> [Track.Extent]
    {
        try database.rows(
            "SELECT slot, start, end FROM slots WHERE file=? AND slot >= ? AND slot <= ?",
            file.id,
            IndexedPart.slot(of: time.lowerBound),
            IndexedPart.slot(of: time.upperBound - 1)
        ) { row in
            let slot = row.required(0) * IndexedPart.slot
            guard row.required(1) < row.required(2) else { return nil }
            let all = max(slot, time.lowerBound)..<min(slot + IndexedPart.slot, time.upperBound)
            let bytes = row.required(1)..<row.required(2)
            return (path, bytes, all)
        }
    }
}
