// Which path is which route.
import Testing

@testable import ServerBase
@testable import ServerWeb

@Suite struct RouteTests {
    @Test(arguments: [
        ("/", "page(overview)"), ("/beacons", "page(beacons)"), ("/beacons/", "file(/beacons/)"),
        ("/device/", "page(nothing)"), ("/device/d1", "page(device d1)"),
        ("/device/d1/events/17/e-1", "page(device d1 before 17 e-1)"),
        ("/device/d1/events/x/e-1", "page(nothing)"), ("/device/d1/names", "page(names d1)"),
        ("/device/..", "page(nothing)"), ("/device/../names", "page(names ..)"),
        ("/device/d1/2026-11-21", "page(day d1 2026-11-21 whole)"),
        ("/device/d1/2026-02-30", "page(nothing)"),
        ("/device/d1/2026-11-21/s.gpx", "page(day d1 2026-11-21 stream s.gpx)"),
        ("/device/d1/2026-11-21/s/07", "page(day d1 2026-11-21 sound s 07)"),
        ("/device/d1/2026-11-21/../07", "page(nothing)"),
        ("/device/d1/2026-11-15..2026-11-21", "page(day d1 2026-11-15..2026-11-21 whole)"),
        (
            "/device/d1/2026-11-15..2026-11-21/s.gpx",
            "page(day d1 2026-11-15..2026-11-21 stream s.gpx)"
        ),
        ("/device/d1/2026-11-21..2026-11-21", "page(day d1 2026-11-21 whole)"),
        ("/device/d1/2026-11-21..2026-11-15", "page(nothing)"),
        ("/device/d1/2026-11-15...2026-11-21", "page(nothing)"),
        ("/device/d1/2026-11-15..2026-11-21/s", "page(nothing)"),
        ("/device/d1/2026-11-15..2026-11-21/s/07", "page(nothing)"),
        ("/device/d1/2024-01-01..2024-12-31", "page(day d1 2024-01-01..2024-12-31 whole)"),
        ("/device/d1/2023-12-31..2024-12-31", "page(nothing)"),
        ("/device/d1/2026-11-21/s/07/x", "page(nothing)"),
        ("/live/", "changes(true)"), ("/live/device/d1", "changes(true)"),
        ("/live/device/..", "changes(false)"), ("/live/beacons", "changes(false)"),
        ("/live", "file(/live)"), ("/style.css", "file(/style.css)"),
        ("/healthz", "health"), ("/healthz/", "nothing"), ("/metrics", "metrics"),
        ("/api/ingest", "ingest"), ("/api/ingest/", "nothing"), ("/api/v1", "nothing"),
        ("/api/device/verify", "verify"), ("/api/device/enroll", "enrol"),
        ("/api/device/jobs", "jobs"),
        ("/login", "logIn"), ("/logout", "logOut"),
        ("/api/v1/", "read(- -)"), ("/api/v1/openapi.json", "read(- description)"),
        ("/api/v1/devices", "read(- devices)"), ("/api/v1/devices/", "read( device)"),
        ("/api/v1/devices/d1", "read(d1 device)"), ("/api/v1/devices/d1/", "read(d1 -)"),
        ("/api/v1/devices/d1/device", "read(d1 -)"), ("/api/v1/devices/d1/days", "read(d1 days)"),
        ("/api/v1/devices/d1/audio/s/2026-11-21/f", "read(d1 file s 2026-11-21 f)"),
        ("/api/v1/devices/d1/audio/../2026-11-21/f", "read(d1 -)"),
        ("/api/v1/devices/d1/audio/s/x/f", "read(d1 -)"),
    ])
    func path_isParsedIntoARoute(_ path: String, _ route: String) {
        #expect(Self.text(Route(path: path)) == route)
    }

    private static func text(_ route: Route) -> String {
        switch route {
        case .page(let page): "page(\(text(page)))"
        case .changes(let isLive): "changes(\(isLive))"
        case .read(let read): "read(\(read.device ?? "-") \(text(read.target)))"
        case .file(let path): "file(\(path))"
        default: "\(route)"
        }
    }

    private static func text(_ page: PageRoute) -> String {
        switch page {
        case .device(let id, nil): "device \(id)"
        case .device(let id, let event?): "device \(id) before \(event.time) \(event.id)"
        case .names(let id): "names \(id)"
        case .days(let days, let id, .stream(let stream)): "day \(id) \(days.name) stream \(stream)"
        case .days(let days, let id, .sound(let stream, let name)):
            "day \(id) \(days.name) sound \(stream) \(name)"
        case .days(let days, let id, .whole): "day \(id) \(days.name) whole"
        default: "\(page)"
        }
    }

    private static func text(_ target: ReadRoute.Target?) -> String {
        switch target {
        case .table(let resource)?: resource.rawValue
        case .file(let stream, let day, let name)?: "file \(stream) \(day.name) \(name)"
        case .description?: "description"
        case nil: "-"
        }
    }
}
