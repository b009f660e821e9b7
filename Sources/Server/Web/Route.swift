// The paths of the server. A request's path is parsed here, once, and nowhere else.
package import ServerBase

/// The purpose of a request, by its path.
///
/// Names of devices, streams and files are as the path has them: who makes the path of a file from
/// one checks it first (`isName`). Which methods a route takes is decided with the request's header.
package enum Route {
    package static let readAPI = "/api/v1/"

    case health, metrics
    case ingest, verify, enrol, jobs
    case logIn, logOut
    case page(PageRoute)
    /// The changes of an open page; false: of a page that does not exist or never changes.
    case changes(isLive: Bool)
    case read(ReadRoute)
    /// A file of the pages, if there is one at this address.
    case file(String)
    /// A path for programs that leads nowhere.
    case nothing

    package init(path: String) {
        self =
            switch path {
            case "/healthz": .health
            case "/metrics": .metrics
            case "/api/ingest": .ingest
            case "/api/device/verify": .verify
            case "/api/device/enroll": .enrol
            case "/api/device/jobs": .jobs
            case "/login": .logIn
            case "/logout": .logOut
            case "/": .page(.overview)
            case "/beacons": .page(.beacons)
            case "/days.csv": .page(.daysFile(device: nil))
            case "/devices/new": .page(.newDevice(code: nil))
            default: Self.below(path)
            }
    }

    private static func below(_ path: String) -> Self {
        let parts = path.split(separator: "/").map(String.init)
        // An id may have slashes in it.
        if path.hasPrefix("/beacon/") { return .page(.beacon(String(path.dropFirst(8)))) }
        if path.hasPrefix("/device/") { return .page(PageRoute(device: parts.dropFirst())) }
        if parts.count == 3, path.hasPrefix("/devices/new/"), let code = Int64(parts[2]) {
            return .page(.newDevice(code: code))
        }
        if path.hasPrefix("/live/") {
            let isDevice = parts.count == 3 && parts[1] == "device" && isName(parts[2])
            return .changes(isLive: path == "/live/" || isDevice)
        }
        if path.hasPrefix(readAPI) { return .read(ReadRoute(path.dropFirst(readAPI.utf8.count))) }
        let isForPrograms = ["/api/", "/healthz", "/metrics"].contains { path.hasPrefix($0) }
        return isForPrograms ? .nothing : .file(path)
    }

    /// True if a person's browser requests it; an error is then answered with a page.
    package var isForPeople: Bool {
        switch self {
        case .logIn, .logOut, .page, .file: true
        default: false
        }
    }
}

/// A page.
package enum PageRoute {
    case overview, beacons
    case beacon(String)
    /// The form of a new device; with the number of its code, whether it has arrived.
    case newDevice(code: Int64?)
    /// A device; with its events before the given one, nil: with the newest.
    case device(String, before: (time: Int64, id: String)?)
    /// The form of a device's names.
    case names(String)
    /// The device's last report; as a form it asks for one.
    case report(String)
    /// The form of a device's settings.
    case settings(String)
    /// A form that asks for the sound of an hour.
    case sound(String)
    /// Days of a device; several have no records' and audio pages.
    case days(DaySpan, device: String, DayRoute)
    /// The days of a device at a glance.
    case season(String)
    /// The days of a device, or of all, as CSV.
    case daysFile(device: String?)
    case nothing

    /// `parts`: those of the path after `/device`.
    fileprivate init(device parts: ArraySlice<String>) {
        guard let device = parts.first else {
            self = .nothing
            return
        }
        let rest = Array(parts.dropFirst())
        if rest == ["names"] {
            self = .names(device)
        } else if !isName(device) {
            self = .nothing
        } else if rest.isEmpty {
            self = .device(device, before: nil)
        } else if rest == ["report"] {
            self = .report(device)
        } else if rest == ["settings"] {
            self = .settings(device)
        } else if rest == ["sound"] {
            self = .sound(device)
        } else if rest == ["days"] {
            self = .season(device)
        } else if rest == ["days.csv"] {
            self = .daysFile(device: device)
        } else if let days = DaySpan(rest[0]), let part = DayRoute(rest.dropFirst()),
            days.count == 1 || part.isOfSeveralDays
        {
            self = .days(days, device: device, part)
        } else if rest.count == 3, rest[0] == "events", let time = Int64(rest[1]), isName(rest[2]) {
            self = .device(device, before: (time, rest[2]))
        } else {
            self = .nothing
        }
    }

    /// True if it takes a form.
    package var hasForm: Bool {
        switch self {
        case .beacons, .names, .report, .settings, .sound, .newDevice(code: nil): true
        default: false
        }
    }
}

/// A page or a file of a device's days.
package enum DayRoute {
    case whole
    /// A stream's records, or a file made from them (`STREAM.gpx`).
    case stream(String)
    /// An hour of a stream's audio (`07`) or an audio file.
    case sound(stream: String, name: String)

    /// `parts`: those of the path after the day; nil if they lead nowhere.
    fileprivate init?(_ parts: ArraySlice<String>) {
        switch (parts.count, parts.first, parts.last) {
        case (0, _, _): self = .whole
        case (1, let name?, _): self = .stream(name)
        case (2, let stream?, let name?) where isName(stream):
            self = .sound(stream: stream, name: name)
        default: return nil
        }
    }

    /// True if several days have it, too.
    fileprivate var isOfSeveralDays: Bool {
        switch self {
        case .whole: true
        case .stream(let name): name.hasSuffix(".gpx")
        case .sound: false
        }
    }
}

/// A resource of the read API.
package struct ReadRoute {
    package enum Target {
        case description
        case table(APIResource)
        case file(stream: String, Day, name: String)
    }

    /// The device whose resource it is; nil if it is of none.
    package private(set) var device: String?
    /// Nil if there is no such resource.
    package private(set) var target: Target?

    /// `path`: after `Route.readAPI`.
    fileprivate init(_ path: Substring) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        if parts == ["openapi.json"] { target = .description }
        guard parts.first == "devices" else { return }
        device = parts.count > 1 ? parts[1] : nil
        switch parts.count {
        case 1: target = .table(.devices)
        case 2: target = .table(.device)
        case 3:
            let resource = APIResource(rawValue: parts[2])
            target = resource.flatMap { $0 == .devices || $0 == .device ? nil : .table($0) }
        case 6 where parts[2] == "audio" && isName(parts[3]):
            target = Day(parts[4]).map { .file(stream: parts[3], $0, name: parts[5]) }
        default: break
        }
    }
}

/// A table of the read API; all but the first are below a device.
package enum APIResource: String, CaseIterable {
    case devices, device, days, readings, positions, audio, events, series
}
