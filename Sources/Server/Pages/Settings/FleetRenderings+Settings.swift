// The page on which an editor gives a device settings.
import Host
import ServerArchive
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    func settingsForm(_ device: String, at now: Int64) throws -> HTTPAnswer {
        try expectEditor()
        return HTTPAnswer(page: try settingsPage(device, at: now).html())
    }

    private func settingsPage(_ device: String, at now: Int64) throws -> SettingsPage {
        _ = try find(device)
        let newest = try jobs.settings(of: device).first
        return SettingsPage(
            device: device,
            names: known,
            newest: newest,
            text: newest?.text ?? "",
            now: now
        )
    }

    /// Gives a device the text of a form as its next version, or answers with the form and the
    /// reasons why not.
    ///
    /// `version`: the newest one when the form was made.
    func saveSettings(_ sent: String, of device: String, after version: String, at now: Int64)
        throws -> HTTPAnswer
    {
        var page = try settingsPage(device, at: now)
        // Browsers end the lines of a form with CRLF.
        page.text = sent.replacing(text: "\r\n", with: "\n")
        page.errors = DeviceSettings.errors(in: page.text)
        let newest = page.newest?.version ?? 0
        if version != "\(newest)" {
            page.errors.append(
                "version \(newest) was set while this page was open; save again to replace it"
            )
        }
        guard page.errors.isEmpty else { return HTTPAnswer(422, page: page.html()) }
        let end = WallTime(milliseconds: now) + DeviceJobs.settingsWait
        do {
            _ = try jobs.setSettings(of: device, page.text, version: newest + 1, until: end)
        } catch let failure as Failure {
            page.errors = [failure.message]
            return HTTPAnswer(422, page: page.html())
        }
        return HTTPAnswer(seeOther: "/device/\(device)")
    }
}

struct SettingsPage {
    let device: String
    let names: KnownNames
    /// Nil if the device was never given settings.
    let newest: DeviceSettings?
    var text: String
    /// Why the text cannot be saved.
    var errors: [String] = []
    let now: Int64

    func html() -> HTML {
        .page("Settings of \(names.title(device)) – Waypost fleet", now: now) { html in
            html.element("h1") { html in
                html.text("Settings of ")
                html.device(device, names, isLink: true)
            }
            if let newest { html.lines(of: newest) }
            html.element("p", [("class", "soft")], Self.help)
            html.form(to: "/device/\(device)/settings", wrong: nil, button: "Save") { html in
                problems(&html)
                let version = "\(newest?.version ?? 0)"
                html.open(
                    "input",
                    [("type", "hidden"), ("name", "version"), ("value", version)]
                )
                html.textArea("Settings, as TOML", "text", text)
            }
            html.element("p") {
                $0.element("a", [("href", "/device/\(device)")], "Back to \(device)")
            }
        }
    }

    private static let help = """
        Only keys that waypost.toml(5) marks as remote. They lie above the device's own file, and each version \
        replaces the one before as a whole; an empty one leaves the device's own file alone. The device takes them if \
        its own file has [remote] allow = ["settings"]. It checks the values, tries the version, and rolls it back \
        if a source or the upload fails. A device with remote.key takes only a signed version: waypost-receiver \
        settings set.
        """

    private func problems(_ html: inout HTML) {
        guard !errors.isEmpty else { return }
        html.element("div", [("class", "wrong"), ("role", "alert")]) { html in
            html.element("p", "Not saved:")
            html.element("ul") { html in
                for error in errors { html.element("li", error) }
            }
        }
    }
}

extension HTML {
    /// Adds the version that a device should have with its state, and the version in force.
    mutating func lines(of settings: DeviceSettings) {
        element("p") { html in
            html.text("Settings: version \(settings.version) wanted, ")
            html.state(of: settings)
        }
        element("p", "Settings in force: \(settings.inForceWords)")
    }

    /// Adds a version's state with its time and the device's reason.
    mutating func state(of settings: DeviceSettings) {
        text("\(settings.state.words) ")
        time(settings.at.milliseconds)
        if !settings.message.isEmpty { text(": \(settings.message)") }
    }
}
