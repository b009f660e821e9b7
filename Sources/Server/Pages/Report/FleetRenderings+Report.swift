// The page of a device's last report, on which an editor asks for one.
import Host
import ServerArchive
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    /// How long a device may take to answer.
    static let patience = Duration.seconds(7 * 86_400)

    func report(_ device: String, at now: Int64) throws -> HTTPAnswer {
        _ = try find(device)
        _ = try jobs.refresh(waits: true)
        var page = ReportPage(device: device, names: known, isEditor: isEditor, now: now)
        page.isAsked = jobs.openReport(of: device) != nil
        page.settings = try jobs.settings(of: device).first
        do {
            page.text = try jobs.record(of: nil, of: device).map { ReportText($0).text }
        } catch let failure as Failure {
            page.text = failure.message
        }
        var answer = HTTPAnswer(page: page.html())
        if page.isAsked { answer.headers.append(("Refresh", "5")) }
        return answer
    }

    func askForReport(_ device: String, at now: Int64) throws -> HTTPAnswer {
        _ = try find(device)
        let end = WallTime(milliseconds: now) + Self.patience
        _ = try jobs.refresh(waits: true)
        do {
            _ = try jobs.askForReport(of: device, until: end)
        } catch let failure as Failure {
            throw HTTPError(status: 409, reason: failure.message)
        }
        return HTTPAnswer(seeOther: "/device/\(device)/report")
    }
}

struct ReportPage {
    let device: String
    let names: KnownNames
    let isEditor: Bool
    let now: Int64
    /// The last report as text; nil if none has come.
    var text: String?
    /// One was asked for and has not come.
    var isAsked = false
    /// The newest version of the device's settings; nil if it was never given any.
    var settings: DeviceSettings?

    func html() -> HTML {
        .page("Report of \(names.title(device)) – Waypost fleet", now: now) { html in
            html.element("h1") { html in
                html.text("Report of ")
                html.device(device, names, isLink: true)
            }
            if let settings { html.lines(of: settings) }
            if isAsked {
                let words =
                    "Asked for. It comes with the device's next upload, if its own waypost.toml allows "
                    + "that: [remote] allow = [\"operate\"]. This page loads itself again."
                html.element("p", [("role", "status")], words)
            } else if isEditor {
                html.form(to: "/device/\(device)/report", wrong: nil, button: "Ask for a report") {
                    _ in
                }
            }
            guard let text else {
                return html.element("p", [("class", "soft")], "No report has come yet.")
            }
            html.element("h2", "The last report")
            html.lines(text)
        }
    }
}
