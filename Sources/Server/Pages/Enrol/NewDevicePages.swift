// The pages on which an editor sets up a device: the form, the code, and the wait for the device.
import Host
import ServerBase
import ServerIndex
import ServerWeb

struct NewDeviceForm {
    /// True if the first code ends that any token is accepted.
    let isOpen: Bool
    let now: Int64
    var names = DeviceNames()
    var days = "7"
    var wrong: String?

    func html() -> HTML {
        .page("New device – Waypost fleet", now: now) { html in
            html.element("h1", "New device")
            html.element(
                "p",
                "You get a code that enrols one device, once. The names are given to it then."
            )
            if isOpen {
                let words = "With its first code this server stops accepting unknown tokens."
                html.element("p", [("class", "late")], words)
            }
            html.form(to: "/devices/new", wrong: wrong, button: "Make a code") { html in
                html.field("Label, or empty", "label", names.label, maximum: Names.longestLabel)
                html.field("Group, or empty", "group", names.group, maximum: Names.longestGroup)
                html.field("Days until the code expires", "days", days, maximum: 3)
            }
        }
    }
}

/// Shows a new code, this once.
struct CodePage {
    let id: Int64
    let files: CardFiles
    let end: Int64
    let now: Int64

    func html() -> HTML {
        .page("New device – Waypost fleet", now: now) { html in
            html.element("h1", "New device")
            html.element("p") { html in
                html.text("Its code is ")
                html.element("b", files.code.grouped)
                html.text(": shown now and not again, good once until ")
                html.time(end)
                html.text(". ")
                html.element("a", [("href", "/devices/new/\(id)")], "Watch the device arrive")
            }
            if files.isPlain {
                let words =
                    "This address has no encryption: others can read the token and the records. "
                    + "Behind a proxy with TLS, open this page by its https address."
                html.element("p", [("class", "wrong")], words)
            }
            html.element("h2", "With a card")
            html.element(
                "p",
                "Save both files on the drive that appears when the card is in a computer."
            )
            download("waypost.toml", "toml", files.configuration, &html)
            download("waypost.code", "code", files.code.grouped, &html)
            html.element("h2", "With a terminal on the device")
            html.element("pre", files.command)
            guard let picture = QRCode(files.command) else { return }
            html.element("figure") { html in
                picture.draw(&html, label: "QR code of the command")
                let words = "The command as a QR code: a phone shows its text, also from paper."
                html.element("figcaption", [("class", "soft")], words)
            }
        }
    }

    private func download(_ name: String, _ file: String, _ text: String, _ html: inout HTML) {
        html.element("form", [("method", "post"), ("action", "/devices/new")]) { html in
            for (name, value) in [("code", files.code.text), ("file", file)] {
                html.open("input", [("type", "hidden"), ("name", name), ("value", value)])
            }
            html.element("button", [("class", "screen")], "Download \(name)")
        }
        html.lines(text)
    }
}

/// Waits for a device to use its code; is loaded again by itself.
struct ArrivalPage {
    let end: Int64
    let isExpired: Bool
    let now: Int64

    func html() -> HTML {
        .page("New device – Waypost fleet", now: now) { html in
            html.element("h1", "New device")
            html.element("p") { html in
                html.text(
                    isExpired
                        ? "The code expired at " : "Waiting for the device to use its code, until "
                )
                html.time(end)
                html.text(
                    isExpired
                        ? "; make another."
                        : ". This page loads itself again, and becomes the device’s page."
                )
            }
        }
    }
}
