// The read API's devices, days and events, from the index.
import Host
import JSON
import SQLite
import ServerArchive
import ServerIndex
import ServerWeb

extension ReadAPI {
    /// Adds a page of devices; the cursor has the last id.
    func devices(
        _ table: inout APITable,
        _ query: APIQuery,
        _ reader: FleetReader,
        _: String
    )
        throws -> String?
    {
        let state = query.text(.state)
        guard state.map({ name in DeviceLevel.allCases.contains { $0.name == name } }) ?? true
        else { throw APIQuery.wrong(.state, state ?? "", "a state of a device") }
        let last = try query.cursor(1)?.first ?? ""
        let contacts = try Contacts.read(directory: looks.directory)
        let tokens = try looks.enrolments.devices()
        let ids = Set(contacts.keys).union(tokens.keys).filter { $0 > last }.sorted()
        for (index, id) in ids.enumerated() {
            guard !table.isFull else { return APIQuery.cursor([ids[index - 1]]) }
            let facts = looks.fleet.facts(of: id, reader, at: now)
            let view = looks.fleet.view(id, contacts[id], tokens[id], facts, at: now)
            if state.map({ $0 == view.level.name }) ?? true { table.add(Self.cells(view)) }
        }
        return nil
    }

    /// The cells of a device, as in `APIResource.columns`.
    private static func cells(_ view: DeviceView) -> [APITable.Cell] {
        let records = view.contact?.streams.values.reduce(0) { $0 + $1.records } ?? 0
        return [
            .text(view.id), .text(view.level.name), .list(view.reasons),
            .init(view.contact?.version), .init(time: view.contact?.firstSeen.milliseconds),
            .init(time: view.lastSeen), .init(view.vitals.place?.latitude),
            .init(view.vitals.place?.longitude), .init(time: view.vitals.place?.time),
            .integer(view.facts.lost), .integer(records),
        ]
    }

    /// Answers with one device; its JSON has the streams, too.
    func one(_ device: String, _ head: RequestHead) throws -> HTTPAnswer {
        let query = try APIQuery(head, of: .device)
        let (reader, note) = try open()
        let (contact, token) = try looks.find(device)
        let facts = looks.fleet.facts(of: device, reader, at: now)
        let cells = Self.cells(looks.fleet.view(device, contact, token, facts, at: now))
        guard !query.isCSV else {
            var table = APITable(.device, isCSV: true, limit: 1)
            table.add(cells)
            return HTTPAnswer(read: table.bytes(next: nil, note: nil), isCSV: true, head)
        }
        let contents = try reader.contents(of: device)
        let streams = try reader.streams(of: device).sorted { $0.key < $1.key }
        var json = JSONWriter()
        json.object { json in
            APITable.write(cells, of: .device, to: &json)
            json.key("streams")
            json.array { json in
                for (name, stream) in streams {
                    json.object { json in
                        json.field("stream", name)
                        json.field("content", (contents[name] ?? .readings).rawValue)
                        json.field("records", stream.records)
                        for (key, time) in [("first", stream.first), ("last", stream.last)] {
                            if let time { json.field(key, WallTime(milliseconds: time)) }
                        }
                    }
                }
            }
            if let note { json.field("note", note) }
        }
        return HTTPAnswer(read: json.bytes + [10], isCSV: false, head)
    }

    /// Adds a page of days; the cursor has the last date.
    func days(
        _ table: inout APITable,
        _ query: APIQuery,
        _ reader: FleetReader,
        _ device: String
    ) throws -> String? {
        let (first, last) = try query.span().dates
        let known = try query.cursor(1)?.first ?? ""
        let row = try reader.database.prepare(
            """
            SELECT date, sum(records), min(first), max(last), group_concat(stream, ' ') FROM files
            WHERE device=? AND date >= ? AND date <= ? AND date > ? GROUP BY date ORDER BY date
            """,
            device,
            first,
            last,
            known
        )
        var date = ""
        while try row.step() {
            guard !table.isFull else { return APIQuery.cursor([date]) }
            date = row.text(0)
            table.add([
                .text(date), .integer(row.required(1)), .init(time: row.integer(2)),
                .init(time: row.integer(3)),
                .list(row.text(4).split(separator: " ").map(String.init).sorted()),
            ])
        }
        return nil
    }

    /// The maximum number of events that are read for one page.
    private static let maxEvents = 50_000

    /// Adds a page of events; the cursor has the time and the id of the last.
    func events(
        _ table: inout APITable,
        _ query: APIQuery,
        _ reader: FleetReader,
        _ device: String
    ) throws -> String? {
        let (span, place) = (try query.span(), try query.cursor(2))
        let time = place.map { Int64($0[0]) } ?? (span.from ?? .min)
        guard let time else { throw APIQuery.badCursor }
        let row = try reader.database.prepare(
            """
            SELECT time, id, kind, source, detail FROM events WHERE device=?1 AND (time, id) > (?2, ?3)
            AND time >= ?4 AND time < ?5 ORDER BY time, id
            """,
            device,
            time,
            place?[1] ?? "",
            span.from ?? .min,
            span.to ?? .max
        )
        let (kind, source) = (query.text(.kind), query.text(.source))
        var (read, last) = (0, [""])
        while try row.step() {
            guard !table.isFull, read < Self.maxEvents else { return APIQuery.cursor(last) }
            read += 1
            last = ["\(row.required(0))", row.text(1)]
            guard kind.map({ $0 == row.text(2) }) ?? true,
                source.map({ $0 == row.text(3) }) ?? true
            else { continue }
            let detail = row.text(4)
            table.add([
                .time(row.required(0)), .text(row.text(1)), .text(row.text(2)),
                .text(row.text(3)), detail.isEmpty ? .none : .object(detail),
            ])
        }
        return nil
    }
}
