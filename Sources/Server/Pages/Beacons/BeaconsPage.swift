// The page of all beacons.
import Host
import ServerBase
import ServerIndex
import ServerWeb

extension FleetRenderings {
    func beacons(_ head: RequestHead, at now: Int64) throws -> BeaconsPage {
        let (reader, note) = fleet.openIndex()
        let list = try BeaconList(head.query, known, reader, at: now)
        let shown = list.page.entries + (list.emptiest.map { [$0] } ?? [])
        var numbers: [String: BeaconNumbers] = [:]
        for case (let id, let heard?) in shown.map({ ($0.id, $0.heard) }) {
            numbers[id] = try reader.map { try BeaconNumbers(heard, $0) }
        }
        return BeaconsPage(
            list: list,
            numbers: numbers,
            names: known,
            isEditor: isEditor,
            now: now,
            note: note
        )
    }
}

struct BeaconsPage {
    let list: BeaconList
    /// Those of the beacons on this page.
    let numbers: [String: BeaconNumbers]
    let names: KnownNames
    let isEditor: Bool
    let now: Int64
    let note: String?

    func html() -> HTML {
        .page("Beacons – Waypost fleet", now: now) { html in
            html.element("h1", "Beacons")
            html.note(note)
            emptiest(&html)
            form(&html)
            guard !list.entries.isEmpty else { return nothing(&html) }
            let page = list.page
            let count = Words.count(Int64(list.entries.count), "beacon", "beacons")
            html.element(
                "p",
                [("class", "soft")],
                list.isCut ? "The \(count) heard last." : "\(count)."
            )
            html.table(["Beacon", "Last heard", "Battery", "Last readings"]) { html in
                for entry in page.entries { row(entry, &html) }
            }
            page.links(&html, address: list.address(ofPage:))
        }
    }

    private func emptiest(_ html: inout HTML) {
        guard let entry = list.emptiest, let battery = numbers[entry.id]?.battery else { return }
        html.element("p") { html in
            html.text("Lowest battery: ")
            html.element("a", [("href", BeaconPage.address(entry.id))], entry.label ?? entry.id)
            html.text(", \(battery).")
        }
    }

    private func form(_ html: inout HTML) {
        let form: [HTML.Attribute] = [
            ("class", "filter screen"), ("action", "/beacons"), ("role", "search"),
        ]
        html.element("form", form) { html in
            html.raw(#"<div><label for="q">Label or id</label>"#)
            let value = ("value" as StaticString, list.search)
            html.open("input", [("id", "q"), ("name", "q"), ("type", "search"), value])
            html.raw("</div>")
            let orders = BeaconList.Order.allCases.map { ("\($0)", $0.rawValue) }
            html.choice("Order", "sort", orders, "\(list.order)")
            html.raw("<button>Show</button>")
        }
    }

    private func nothing(_ html: inout HTML) {
        guard !list.search.isEmpty else {
            return html.element("p", [("class", "soft")], "No beacon was heard yet.")
        }
        html.element("p") { html in
            html.text("No beacon has this in its label or id. ")
            guard isEditor else { return }
            let link: [HTML.Attribute] = [("href", BeaconPage.address(list.search))]
            html.element("a", link, "Name \(list.search) before it is heard")
        }
    }

    private func row(_ entry: BeaconList.Entry, _ html: inout HTML) {
        html.element("tr") { html in
            html.element("th", [("scope", "row")]) { html in
                html.beacon(entry.id, names, isEditor: false)
                if isEditor { html.naming(entry.id, entry.label, back: list.address) }
            }
            html.cell("Last heard", entry.heard) { html, heard in
                html.time(heard.time)
                html.text(" by ")
                html.element("a", [("href", heard.address)], names.title(heard.device))
                html.ago(heard.time, now: now)
            }
            html.cell("Battery", numbers[entry.id]?.battery) { $0.text($1) }
            html.cell("Last readings", numbers[entry.id]?.others.joined(separator: ", ")) {
                $0.text($1)
            }
        }
    }
}

extension HeardBeacon {
    /// The page of the day of the device that heard it.
    var address: String { day.address(of: device) }
}

extension HTML {
    /// Adds the form of a beacon's label, which opens in its place; `back`: the page that shows it.
    mutating func naming(
        _ beacon: String,
        _ label: String?,
        back: String,
        _ wrong: String? = nil,
        isOpen: Bool = false
    ) {
        let open: [Attribute] = isOpen || wrong != nil ? [("open", "")] : []
        element("details", [("class", "naming screen")] + open) { html in
            html.element("summary", label == nil ? "Name" : "Change name")
            html.form(to: "/beacons", wrong: wrong) { html in
                for (name, value) in [("beacon", beacon), ("back", back)] {
                    html.open("input", [("type", "hidden"), ("name", name), ("value", value)])
                }
                html.raw("<label>Label; empty to remove it ")
                let field: [Attribute] = [
                    ("name", "label"), ("value", label ?? ""), ("autocomplete", "off"),
                    ("maxlength", "\(Names.longestLabel)"),
                ]
                html.open("input", field)
                html.raw("</label>")
            }
        }
    }
}
