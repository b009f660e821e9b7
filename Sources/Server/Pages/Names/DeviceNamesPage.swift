// The page on which an editor names a device, and names on other pages.
package import ServerIndex

/// The form of a device's names.
struct DeviceNamesPage {
    let device: String
    let names: DeviceNames
    /// Why the names that were sent cannot be stored.
    var wrong: String?
    let now: Int64

    func html() -> HTML {
        .page("Names of \(device) – Waypost fleet", now: now) { html in
            html.element("h1", "Names of \(device)")
            html.form(to: "/device/\(device)/names", wrong: wrong) { html in
                html.field("Label", "label", names.label, maximum: Names.longestLabel)
                html.field("Group", "group", names.group, maximum: Names.longestGroup)
                html.field("Note", "note", names.note, maximum: Names.longestNote)
            }
            html.element("p") {
                $0.element("a", [("href", "/device/\(device)")], "Back to \(device)")
            }
        }
    }
}

extension HTML {
    /// Adds a form that is sent by POST, with a button to save.
    mutating func form(
        to path: String,
        wrong: String?,
        button: String = "Save",
        _ fields: (inout HTML) -> Void
    ) {
        element("form", [("class", "names"), ("method", "post"), ("action", path)]) { html in
            if let wrong {
                html.element("p", [("class", "wrong"), ("role", "alert")], "Not saved: \(wrong).")
            }
            fields(&html)
            html.element("button", button)
        }
    }

    mutating func field(_ title: String, _ name: String, _ value: String, maximum: Int) {
        element("label", [("for", name)], title)
        let attributes: [Attribute] = [
            ("id", name), ("name", name), ("value", value), ("maxlength", "\(maximum)"),
            ("autocomplete", "off"),
        ]
        open("input", attributes)
    }

    /// Adds a text of several lines to edit.
    mutating func textArea(_ title: String, _ name: String, _ value: String) {
        element("label", [("for", name)], title)
        let attributes: [Attribute] = [
            ("id", name), ("name", name), ("rows", "20"), ("spellcheck", "false"),
            ("autocapitalize", "off"), ("autocomplete", "off"),
        ]
        element("textarea", attributes) { html in
            // A browser drops the line feed right behind the tag.
            html.raw("\n")
            html.multiline(value)
        }
    }

    /// Adds a device's label with its id, or the id alone; `isLink`: to its page.
    package mutating func device(_ id: String, _ names: KnownNames, isLink: Bool = false) {
        if isLink {
            element("a", [("href", "/device/\(id)")], names.title(id))
        } else {
            text(names.title(id))
        }
        let group = names.devices[id]?.group ?? ""
        let under = (names.label(id) == nil ? [] : [id]) + (group.isEmpty ? [] : [group])
        guard !under.isEmpty else { return }
        text(" ")
        element("span", [("class", "under")], under.joined(separator: " · "))
    }

    /// Adds a link to a beacon's page, by its label with its id or by the id alone; an editor gets
    /// one to name it, too.
    mutating func beacon(_ id: String, _ names: KnownNames, isEditor: Bool) {
        let (address, label) = (BeaconPage.address(id), names.beacons[id])
        element("a", [("href", address)], label ?? id)
        text(" ")
        if label != nil {
            element("span", [("class", "under")], id)
        } else if isEditor {
            element("a", [("class", "act screen"), ("href", "\(address)")]) { html in
                html.text("Name")
                html.element("span", [("class", "hidden")], " \(id)")
            }
        }
    }
}
