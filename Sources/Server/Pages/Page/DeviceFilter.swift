// Search and filter of the overview.
import Host
import ServerIndex

/// The devices that a viewer wants to see; sent by a plain form, so that it works without a script.
struct DeviceFilter {
    /// The number of devices from which on the form is shown.
    private static let least = 20

    private let search: String
    private let group: String
    private let state: DeviceLevel?
    /// The page of the list, from 1.
    let page: Int

    init(_ query: [String: String]) {
        search = String((query["q"] ?? "").prefix(100))
        group = String((query["group"] ?? "").prefix(100))
        state = DeviceLevel.allCases.first { $0.name == query["state"] }
        page = query["page"].flatMap { Int($0) } ?? 1
    }

    /// True if all devices are shown.
    var isEmpty: Bool { search.isEmpty && group.isEmpty && state == nil }

    /// Returns the address of another page of the same list.
    func address(ofPage page: Int) -> String {
        let fields = [("q", search), ("group", group), ("state", state?.name ?? "")]
        let rest = fields.filter { !$1.isEmpty }.map { "&\($0)=\(FormField.written($1))" }
        return "/?page=\(page)" + rest.joined()
    }

    func fits(_ device: DeviceView, _ names: DeviceNames?) -> Bool {
        if let state, device.level != state { return false }
        if !group.isEmpty, names?.group != group { return false }
        let texts = [device.id, names?.label ?? "", names?.group ?? "", names?.note ?? ""]
        let wanted = search.lowercased().split(separator: " ")
        return wanted.allSatisfy { word in
            texts.contains { $0.lowercased().contains(text: String(word)) }
        }
    }

    /// Adds the form, unless there are so few devices that nobody needs it.
    func draw(_ html: inout HTML, devices: [DeviceView], _ names: KnownNames) {
        guard devices.count >= Self.least || !isEmpty else { return }
        let groups = Set(devices.compactMap { names.devices[$0.id]?.group }).subtracting([""])
        let form: [HTML.Attribute] = [
            ("class", "filter screen"), ("method", "get"), ("action", "/"), ("role", "search"),
        ]
        html.element("form", form) { html in
            html.raw(#"<div><label for="q">Search</label>"#)
            html.open("input", [("id", "q"), ("name", "q"), ("type", "search"), ("value", search)])
            html.raw("</div>")
            if !groups.isEmpty || !group.isEmpty {
                let options = groups.union(group.isEmpty ? [] : [group]).sorted()
                Self.choice("Group", "group", options, group, &html)
            }
            let states = DeviceLevel.allCases.reversed().map(\.name)
            Self.choice("State", "state", states, state?.name ?? "", &html)
            html.raw("<button>Show</button>")
            if !isEmpty { html.raw(#"<a href="/">Show all</a>"#) }
        }
    }

    /// Adds a choice of one of these names, or of all.
    private static func choice(
        _ title: String,
        _ name: String,
        _ options: [String],
        _ chosen: String,
        _ html: inout HTML
    ) {
        html.choice(title, name, [("", "All")] + options.map { ($0, $0) }, chosen)
    }
}

extension HTML {
    /// Adds a labelled list of options, each a value with its title.
    mutating func choice(
        _ title: String,
        _ name: String,
        _ options: [(String, String)],
        _ chosen: String
    ) {
        element("div") { html in
            html.element("label", [("for", name)], title)
            html.element("select", [("id", name), ("name", name)]) { html in
                for (value, title) in options {
                    let mark: [Attribute] = value == chosen ? [("selected", "")] : []
                    html.element("option", [("value", value)] + mark, title)
                }
            }
        }
    }
}
