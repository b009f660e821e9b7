// Answers requests of an editor who sets up a device.
import FoundationEssentials
import Host
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    /// `code`: the number of the code whose device is awaited; nil for the form.
    func newDevice(_ code: Int64?, at now: Int64) throws -> HTTPAnswer {
        try expectEditor()
        guard let code else {
            return HTTPAnswer(page: NewDeviceForm(isOpen: !enrolments.isInUse(), now: now).html())
        }
        let entry = try enrolments.list(at: .now).first { $0.id == code }
        guard let entry else { throw Self.nothing }
        // The device's page is live: it shows the first data, and that the device is healthy.
        if case .used(let device) = entry.state { return HTTPAnswer(seeOther: "/device/\(device)") }
        let end = Int64(entry.expires.timeIntervalSince1970) * 1000
        let page = ArrivalPage(end: end, isExpired: entry.state == .expired, now: now)
        var answer = HTTPAnswer(page: page.html())
        if !page.isExpired { answer.headers.append(("Refresh", "5")) }
        return answer
    }

    /// Makes a code and shows it, or answers with a file for a card that has it.
    func makeCode(_ head: RequestHead, at now: Int64, _ field: (String) throws -> String) throws
        -> HTTPAnswer
    {
        guard let site = head.site else {
            throw HTTPError(status: 400, reason: "the header Host does not name this server")
        }
        if let code = GivenSecret(typed: try field("code")) {
            return CardFiles(site: site, code: code).answer(isCode: try field("file") != "toml")
        }
        var form = NewDeviceForm(isOpen: !enrolments.isInUse(), now: now)
        (form.names.label, form.names.group) = (try field("label"), try field("group"))
        form.days = try field("days")
        do {
            try Names.fit(form.names)
            guard let days = Int(form.days), (1...366).contains(days) else {
                throw InvalidNameError("a code is valid for 1 to 366 days")
            }
            let end = Date(timeIntervalSince1970: Double(now / 1000) + Double(days) * 86_400)
            guard let (id, code) = try enrolments.add(until: end).first else { throw Self.nothing }
            try names.set(form.names, of: Names.key(ofCode: id))
            let files = CardFiles(site: site, code: code)
            let page = CodePage(
                id: id,
                files: files,
                end: now + Int64(days) * Day.milliseconds,
                now: now
            )
            return HTTPAnswer(page: page.html())
        } catch let error as InvalidNameError {
            form.wrong = "\(error)"
            return HTTPAnswer(422, page: form.html())
        }
    }
}

/// The two files of a card and the command with which a device enrols (deploy/docs/field.md).
struct CardFiles {
    /// The server's address, `https://host`.
    let site: String
    let code: GivenSecret

    private var endpoint: String { "\(site)/api/ingest" }

    /// True if a gateway must be configured to send without encryption.
    var isPlain: Bool {
        let local = ["http://localhost", "http://127.", "http://[::1]"]
        return site.hasPrefix("http:") && !local.contains { site.hasPrefix($0) }
    }

    var configuration: String {
        "[upload]\nendpoint = \"\(endpoint)\"\ninterval = \"5m\"\n"
            + (isPlain ? "allow_plaintext = true\n" : "")
    }

    var command: String {
        "sudo waypost enroll --endpoint \(endpoint)\(isPlain ? " --allow-plaintext" : "") --code \(code.grouped)"
    }

    /// Answers with `waypost.code` or `waypost.toml`.
    func answer(isCode: Bool) -> HTTPAnswer {
        let text = isCode ? code.grouped + "\n" : configuration
        let name = "waypost.\(isCode ? "code" : "toml")"
        return HTTPAnswer(download: name, type: "text/plain; charset=utf-8", Array(text.utf8))
    }
}
