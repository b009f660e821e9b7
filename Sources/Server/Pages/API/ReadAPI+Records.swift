// The read API's readings, positions and audio, from the record files.
import Host
import ServerBase
import ServerIndex
import ServerWeb

extension ReadAPI {
    func readings(
        _ table: inout APITable,
        _ query: APIQuery,
        _ reader: FleetReader,
        _ device: String
    ) throws -> String? {
        let (beacon, key) = (query.text(.beacon), query.text(.key))
        return try scan(&table, query, reader, device, { $0.hasReadings }) { line, stream in
            var rows: [[APITable.Cell]] = []
            guard let time = line.identity?.time else { return rows }
            RecordNumbers.each(in: line) { quantity, value in
                guard key == nil || key == quantity.key,
                    beacon == nil || beacon == quantity.beacon
                else { return }
                rows.append([
                    .time(time), .text(stream),
                    quantity.beacon.isEmpty ? .none : .text(quantity.beacon),
                    .text(quantity.key), .number(value),
                ])
            }
            return rows
        }
    }

    func positions(
        _ table: inout APITable,
        _ query: APIQuery,
        _ reader: FleetReader,
        _ device: String
    ) throws -> String? {
        try scan(&table, query, reader, device, { $0 == .positions }) { line, stream in
            guard let fix = Track.fix(line) else { return [] }
            let numbers = ["speed", "course", "horizontal_accuracy"].map {
                APITable.Cell(line.number($0))
            }
            return [
                [
                    .time(fix.time), .text(stream), .number(fix.latitude),
                    .number(fix.longitude), .init(fix.altitude),
                ] + numbers + [.init(line.text("fix"))]
            ]
        }
    }

    func audio(
        _ table: inout APITable,
        _ query: APIQuery,
        _ reader: FleetReader,
        _ device: String
    ) throws -> String? {
        try scan(&table, query, reader, device, { $0 == .audio }) { line, stream in
            guard let chunk = AudioDay.chunk(line) else { return [] }
            let date = Day(of: chunk.start).name
            let path = "\(Route.readAPI)devices/\(device)/audio/\(stream)/\(date)/\(chunk.file)"
            return [
                [
                    .time(chunk.start), .time(chunk.end), .text(stream), .text(chunk.file),
                    .init(chunk.level), .text(path),
                ]
            ]
        }
    }

    /// Adds a page of records of the stream in the query, else of those with a content.
    private func scan(
        _ table: inout APITable,
        _ query: APIQuery,
        _ reader: FleetReader,
        _ device: String,
        _ isMeant: (StreamContent) -> Bool,
        _ rows: (RecordLine, _ stream: String) -> [[APITable.Cell]]
    ) throws -> String? {
        let scan = RecordScan(
            directory: looks.directory,
            device: device,
            reader: reader,
            span: try query.span(),
            streams: try reader.streams(query, of: device, isMeant)
        )
        return try scan.page(&table, from: ScanPlace(query), rows)?.cursor
    }
}
