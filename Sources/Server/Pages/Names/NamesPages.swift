// The pages on which an editor names devices and beacons.
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

/// The labels of beacons, with a form for an editor.
struct BeaconNamesPage {
    private static let maximum = 1000

    let names: KnownNames
    let isEditor: Bool
    /// The initial contents of the form.
    var beacon = ""
    var label: String?
    var wrong: String?
    let now: Int64

    func html() -> HTML {
        .page("Beacons – Waypost fleet", now: now) { html in
            html.element("h1", "Names of beacons")
            if isEditor {
                html.form(to: "/beacons", wrong: wrong) { html in
                    html.field("Beacon’s id or address", "beacon", beacon, maximum: 200)
                    let label = label ?? names.beacons[beacon] ?? ""
                    html.field(
                        "Label; empty to remove it",
                        "label",
                        label,
                        maximum: Names.longestLabel
                    )
                }
            }
            table(&html)
        }
    }

    private func table(_ html: inout HTML) {
        guard !names.beacons.isEmpty else {
            return html.element("p", [("class", "soft")], "No beacon has a label yet.")
        }
        html.raw(
            """
            <div class="wide"><table class="fold"><thead><tr><th scope="col">Label</th>
            <th scope="col">Beacon</th></tr></thead><tbody>
            """
        )
        let sorted = names.beacons.sorted { ($0.value, $0.key) < ($1.value, $1.key) }
        for (beacon, label) in sorted.prefix(Self.maximum) {
            html.element("tr") { html in
                html.element("th", [("scope", "row")], label)
                html.element("td", [("data-label", "Beacon")]) { html in
                    guard isEditor else { return html.text(beacon) }
                    html.element("a", [("href", Self.address(beacon))], beacon)
                }
            }
        }
        html.raw("</tbody></table></div>")
        html.more(sorted.count - Self.maximum, "beacon", "beacons")
    }

    /// Returns the address of the form for a beacon.
    static func address(_ beacon: String) -> String {
        "/beacons?beacon=\(FormField.written(beacon))"
    }
}

extension HTML {
    /// Adds a form that is sent by POST, with a button to save.
    fileprivate mutating func form(
        to path: String,
        wrong: String?,
        _ fields: (inout HTML) -> Void
    ) {
        element("form", [("class", "names"), ("method", "post"), ("action", path)]) { html in
            if let wrong {
                html.element("p", [("class", "wrong"), ("role", "alert")], "Not saved: \(wrong).")
            }
            fields(&html)
            html.raw("<button>Save</button>")
        }
    }

    fileprivate mutating func field(_ title: String, _ name: String, _ value: String, maximum: Int)
    {
        element("label", [("for", name)], title)
        let attributes: [Attribute] = [
            ("id", name), ("name", name), ("value", value), ("maxlength", "\(maximum)"),
            ("autocomplete", "off"),
        ]
        open("input", attributes)
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

    /// Adds a beacon's label with its id, or the id alone; an editor gets a link to name it.
    mutating func beacon(_ id: String, _ names: KnownNames, isEditor: Bool) {
        text(names.beacons[id] ?? id)
        if isEditor {
            text(" ")
            element("a", [("class", "act screen"), ("href", BeaconNamesPage.address(id))]) { html in
                html.text("Name")
                html.element("span", [("class", "hidden")], " \(id)")
            }
        }
        guard names.beacons[id] != nil else { return }
        text(" ")
        element("span", [("class", "under")], id)
    }
}
