// Maps the routes of requests to pages.
import Host
import ServerArchive
import ServerBase
import ServerIndex
import ServerWeb

/// Renders pages from the archive, the enrolments and the index; each call opens what it reads.
struct FleetRenderings: Sendable {
    /// Contains an archive.
    let directory: String
    let enrolments: Enrolments
    let names: Names
    let jobs: DeviceJobs
    let fleet: Fleet
    let libraries: WebLibraries
    /// The names at the time of this request.
    private(set) var known = KnownNames()
    private(set) var isEditor = false

    /// Returns a copy for one request.
    func reading(for role: ViewerRole) throws -> Self {
        var copy = self
        (copy.known, copy.isEditor) = (try names.current(), role == .editor)
        return copy
    }

    /// `now`: milliseconds since 1970.
    func answer(_ page: PageRoute, _ head: RequestHead, at now: Int64) throws -> HTTPAnswer {
        switch page {
        case .overview: return try overview(head, at: now)
        case .beacons: return HTTPAnswer(page: try beacons(head, at: now).html())
        case .beacon(let id):
            let page = try beaconPage(id, device: head.query["device"], at: now)
            return HTTPAnswer(page: page.html())
        case .device(let id, let event):
            return HTTPAnswer(page: try device(id, before: event ?? (.max, ""), at: now))
        case .newDevice(let code): return try newDevice(code, at: now)
        case .names(let id) where isName(id): return try form(id, at: now)
        case .report(let id): return try report(id, at: now)
        case .settings(let id): return try settingsForm(id, at: now)
        case .days(let days, let id, let part): return try answer(head, days, id, part, now)
        case .season(let id): return HTTPAnswer(page: try daysPage(id, head, at: now))
        case .daysFile(let id): return try daysFile(id, head, at: now)
        case .names, .sound, .nothing: throw Self.nothing
        }
    }

    static var nothing: HTTPError { HTTPError(status: 404, reason: "no such page") }

    private func overview(_ head: RequestHead, at now: Int64) throws -> HTTPAnswer {
        let (reader, note) = fleet.openIndex()
        let (today, fortnight) = (Day(of: now), try days([:], usual: 14, at: now))
        let page = OverviewPage(
            devices: DeviceView.sorted(try fleet.devices(reader, at: now)),
            names: known,
            filter: DeviceFilter(head.query),
            now: now,
            note: note,
            libraries: libraries,
            isEditor: isEditor,
            days: { calendar($0, fortnight, reader, now)?.worst ?? [] },
            detections: { (try? reader?.detections(of: $0, from: today, to: today)) ?? [:] }
        )
        return HTTPAnswer(page: page.html(), tiles: page.hasMap ? libraries.tiles : nil)
    }

    /// Throws an HTTPError for a device that has neither sent nor enrolled.
    func find(_ id: String) throws -> (Contact?, DeviceToken?) {
        let contact = try Contacts.read(directory: directory, device: id)
        let token = try enrolments.devices()[id]
        guard contact != nil || token != nil else { throw Self.nothing }
        return (contact, token)
    }

    /// Throws an HTTPError like `find`.
    func view(_ id: String, _ reader: FleetReader?, at now: Int64) throws -> DeviceView {
        let (contact, token) = try find(id)
        return fleet.view(id, contact, token, fleet.facts(of: id, reader, at: now), at: now)
    }

    private func device(_ id: String, before place: (time: Int64, id: String), at now: Int64) throws
        -> HTML
    {
        let (reader, note) = fleet.openIndex()
        let view = try view(id, reader, at: now)
        let maximum = DevicePage.eventsOnAPage + 1
        // Events dated ahead would stay the newest for years.
        let shown = (time: min(place.time, now + Day.milliseconds), id: place.id)
        let year = try days([:], usual: 365, at: now)
        return DevicePage(
            device: view,
            streams: try reader?.streams(of: id) ?? [:],
            ahead: try reader?.days(of: id).filter {
                $0.name > Day(of: now + Day.milliseconds).name
            }
                ?? [],
            calendar: place.time == .max ? calendar(view, year, reader, now) : nil,
            events: try reader?.events(of: id, before: shown, maximum: maximum) ?? [],
            isFirst: place.time == .max,
            settings: try jobs.settings(of: id).first,
            names: known,
            isEditor: isEditor,
            now: now,
            note: note
        ).html()
    }
}
