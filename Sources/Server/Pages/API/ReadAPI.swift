// The read API: answers for programs, from the same sources as the pages.
import Host
import JSON
import ServerArchive
import ServerBase
import ServerIndex
package import ServerWeb

/// Answers requests below `/api/v1/`; each call opens what it reads.
struct ReadAPI {
    let looks: FleetRenderings
    /// Milliseconds since 1970.
    let now: Int64

    func answer(_ route: ReadRoute, _ head: RequestHead) throws -> HTTPAnswer {
        if let device = route.device {
            guard isName(device), try exists(device) else {
                throw HTTPError(
                    status: 404,
                    reason: "no such device; see \(Route.readAPI)devices"
                )
            }
        }
        let device = route.device ?? ""
        switch route.target {
        case .table(let resource): return try answer(resource, device, head)
        case .file(let stream, let day, let name) where AudioChunk.isFile(name):
            return try looks.sound(stream, name, of: device, on: day, head, at: now)
        case .file, .description, nil: throw Self.nothing
        }
    }

    private func answer(_ resource: APIResource, _ device: String, _ head: RequestHead) throws
        -> HTTPAnswer
    {
        switch resource {
        case .devices: return try table(.devices, head, device, devices)
        case .device: return try one(device, head)
        case .days: return try table(.days, head, device, days)
        case .events: return try table(.events, head, device, events)
        case .readings: return try table(.readings, head, device, readings)
        case .positions: return try table(.positions, head, device, positions)
        case .audio: return try table(.audio, head, device, audio)
        case .series: return try series(device, head)
        }
    }

    static var nothing: HTTPError {
        HTTPError(status: 404, reason: "no such resource; see \(OpenAPI.path)")
    }

    private func exists(_ device: String) throws -> Bool {
        if try Contacts.read(directory: looks.directory, device: device) != nil { return true }
        return try looks.enrolments.devices()[device] != nil
    }

    /// Opens the index; throws an HTTPError if there is none yet.
    func open() throws -> (reader: FleetReader, note: String?) {
        guard case (let reader?, let note) = looks.fleet.openIndex() else {
            let reason = "there is no index yet, or it cannot be read; try again in a minute"
            throw HTTPError(status: 503, reason: reason, retryAfter: 60)
        }
        return (reader, note)
    }

    /// Adds a page to a table; returns the next page's cursor, nil at the end.
    typealias Page = (inout APITable, APIQuery, FleetReader, _ device: String) throws -> String?

    private func table(_ resource: APIResource, _ head: RequestHead, _ device: String, _ page: Page)
        throws -> HTTPAnswer
    {
        let query = try APIQuery(head, of: resource)
        var table = APITable(resource, isCSV: query.isCSV, limit: try query.limit())
        let (reader, note) = try open()
        let next = try page(&table, query, reader, device)
        var answer = HTTPAnswer(read: table.bytes(next: next, note: note), isCSV: query.isCSV, head)
        if let next {
            answer.headers.append(("Link", "<\(query.address(next: next))>; rel=\"next\""))
        }
        return answer
    }
}

extension HTTPAnswer {
    /// Answers with data, or with 304 if the client has the same.
    package init(read bytes: [UInt8], isCSV: Bool, _ head: RequestHead) {
        let tag = "\"\(hex(sha256(bytes).prefix(16)))\""
        let known = (head.fields[.ifNoneMatch] ?? "").split(separator: ",").map { trimmed($0) }
        if known.contains(where: { $0 == tag || $0 == "W/\(tag)" }) {
            self.init(304, body: [])
        } else {
            let type = isCSV ? "text/csv; charset=utf-8" : "application/json"
            self.init(200, type: type, bytes)
        }
        headers += [
            ("ETag", tag), ("Cache-Control", "private, no-cache"),
            ("Vary", "Accept, Authorization, Cookie"),
        ]
    }
}
