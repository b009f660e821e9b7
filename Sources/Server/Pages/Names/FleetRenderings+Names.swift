// Shows and stores the forms of names.
import Host
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    func form(_ device: String, at now: Int64) throws -> HTTPAnswer {
        try expectEditor()
        _ = try find(device)
        let names = known.devices[device] ?? DeviceNames()
        return HTTPAnswer(page: DeviceNamesPage(device: device, names: names, now: now).html())
    }

    /// Stores a form; answers with the page that shows its names, or with the form and what is
    /// wrong.
    func save(_ page: PageRoute, _ body: Spool, _ head: RequestHead, at now: Int64) throws
        -> HTTPAnswer
    {
        try expectEditor()
        func field(_ name: String) throws -> String {
            try body.withView { FormField.read(name, $0) } ?? ""
        }
        if case .newDevice = page { return try makeCode(head, at: now, field) }
        if case .report(let device) = page { return try askForReport(device, at: now) }
        if case .sound(let device) = page {
            let (from, days, zone) = (try field("from"), try field("days"), try field("zone"))
            return try askForSound(of: device, from: from, days: days, zone: zone, at: now)
        }
        if case .settings(let device) = page {
            // No text is not an empty one, which clears the settings.
            guard let text = try body.withView({ FormField.read("text", $0) }) else {
                throw Self.nothing
            }
            return try saveSettings(text, of: device, after: try field("version"), at: now)
        }
        guard case .names(let device) = page else {
            let (beacon, label) = (try field("beacon"), try field("label"))
            return try save(label, of: beacon, back: try field("back"), at: now)
        }
        guard isName(device) else { throw Self.nothing }
        _ = try find(device)
        var sent = DeviceNames()
        (sent.label, sent.group, sent.note) =
            (try field("label"), try field("group"), try field("note"))
        do {
            try names.set(sent, of: device)
        } catch let error as InvalidNameError {
            let page = DeviceNamesPage(device: device, names: sent, wrong: "\(error)", now: now)
            return HTTPAnswer(422, page: page.html())
        }
        return HTTPAnswer(seeOther: "/device/\(device)")
    }

    /// `back`: the address of the page with the form.
    private func save(_ label: String, of beacon: String, back: String, at now: Int64) throws
        -> HTTPAnswer
    {
        do {
            try names.set(label, ofBeacon: beacon)
        } catch let error as InvalidNameError {
            var page = try beaconPage(beacon, device: nil, at: now)
            (page.label, page.wrong) = (label, "\(error)")
            return HTTPAnswer(422, page: page.html())
        }
        let isHere =
            back.hasPrefix("/beacon") && back.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return HTTPAnswer(seeOther: isHere ? back : "/beacons")
    }

    func expectEditor() throws {
        guard !isEditor else { return }
        throw HTTPError(
            status: 403,
            reason: "only an editor may do this; "
                + "a viewer becomes one with: waypost-receiver viewers add NAME --role editor"
        )
    }
}
