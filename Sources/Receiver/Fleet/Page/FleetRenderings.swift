// Maps the paths of requests to pages.
import Host

/// Renders pages from the archive, the enrolments and the index; each call opens what it reads.
struct FleetRenderings: Sendable {
    /// Contains an archive.
    let directory: String
    let enrolments: Enrolments
    let fleet: Fleet
    let spectrograms: Spectrograms

    /// `now`: milliseconds since 1970.
    func answer(_ head: RequestHead, at now: Int64) throws -> HTTPAnswer {
        if head.path == "/" { return HTTPAnswer(page: try overview(at: now)) }
        let parts = head.path.split(separator: "/").map(String.init)
        guard parts.count > 1, isName(parts[1]) else { throw Self.nothing }
        if parts.count == 2 {
            return HTTPAnswer(page: try device(parts[1], before: (.max, ""), at: now))
        }
        if let day = Day(parts[2]) {
            return try answer(head, day, parts[1], parts.dropFirst(3), now)
        }
        guard parts.count == 5, parts[2] == "events", let time = Int64(parts[3]), isName(parts[4])
        else { throw Self.nothing }
        return HTTPAnswer(page: try device(parts[1], before: (time, parts[4]), at: now))
    }

    static var nothing: HTTPRefusal { HTTPRefusal(status: 404, reason: "no such page") }

    private func overview(at now: Int64) throws -> HTML {
        let (devices, note) = try fleet.look(at: now)
        return OverviewPage(devices: devices.sorted(by: DeviceView.isBefore), now: now, note: note)
            .html()
    }

    private func device(_ id: String, before place: (time: Int64, id: String), at now: Int64) throws
        -> HTML
    {
        let contact = try Contacts.read(directory: directory, device: id)
        let token = try enrolments.devices()[id]
        guard contact != nil || token != nil else { throw Self.nothing }
        let (reader, note) = fleet.openIndex()
        let facts = fleet.facts(of: id, reader, at: now)
        let most = DevicePage.eventsOnAPage + 1
        // Events dated ahead would stay the newest for years.
        let shown = (time: min(place.time, now + Day.milliseconds), id: place.id)
        return DevicePage(
            device: fleet.view(id, contact, token, facts, at: now),
            streams: try reader?.streams(of: id) ?? [:],
            days: try reader?.days(of: id) ?? [],
            events: try reader?.events(of: id, before: shown, most: most) ?? [],
            isFirst: place.time == .max,
            now: now,
            note: note
        ).html()
    }
}
