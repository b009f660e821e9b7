// The time zone of a page: what its address asks for, and the form to choose another.
import ServerBase
import ServerIndex

struct ZoneChoice {
    /// The zone of the page; UTC if the address names none that is known.
    let zone: TimeZoneRules
    /// True if the address names a zone.
    let isChosen: Bool
    /// True if the script may go on to the browser's zone.
    let isOpen: Bool
    /// Says what is missing; nil if all is well.
    let note: String?

    /// `folder`: that of the time zone database.
    init(_ query: [String: String], folder: String = TimeZoneRules.usualFolder) {
        // In a query, an unescaped + is a blank.
        let asked = String((query["zone"] ?? "").prefix(64).map { $0 == " " ? "+" : $0 })
        let found = TimeZoneRules(asked, folder: folder)
        let hasNames = TimeZoneRules("Europe/London", folder: folder) != nil
        (zone, isChosen, isOpen) = (found ?? .utc, !asked.isEmpty, asked.isEmpty && hasNames)
        if !hasNames {
            note = "This server has no time zones (Debian’s package tzdata), only UTC and offsets."
        } else {
            note =
                found == nil && isChosen
                ? "This server does not know the time zone “\(asked)”; times and days are in UTC."
                : nil
        }
    }

    /// Returns the offset of a longitude in whole hours, as ships keep it.
    static func offset(ofLongitude longitude: Double) -> String {
        let hours = Int((longitude / 15).rounded())
        return "\(hours < 0 ? "-" : "+")\(Words.twoDigits(abs(hours))):00"
    }

    /// Adds the form of the days and the zone of a page.
    ///
    /// `site`: the offset of the device's position; nil if that is unknown.
    func draw(_ html: inout HTML, _ path: String, _ days: DaySpan, site: String?) {
        let form: [HTML.Attribute] = [
            ("class", "filter screen"), ("method", "get"), ("action", path),
        ]
        html.element("form", form) { html in
            html.date("From", "from", days.first)
            html.date("To", "to", days.last)
            html.choice("Times in", "zone", options(site), isChosen ? zone.name : "")
            html.raw(
                """
                <div><label for="offset">or at an offset</label><input id="offset" name="offset" size="7" maxlength="6"
                placeholder="+hh:mm" pattern="[+\\-][0-9]{2}:[0-9]{2}" autocomplete="off"></div><button>Show</button>
                """
            )
        }
    }

    private func options(_ site: String?) -> [(String, String)] {
        var options = [("", "this browser’s zone"), ("UTC", "UTC")]
        if let site { options.append((site, "the site’s offset, UTC\(site)")) }
        if isChosen, !options.contains(where: { $0.0 == zone.name }) {
            options.insert((zone.name, zone.title), at: 0)
        }
        return options
    }
}

extension HTML {
    fileprivate mutating func date(_ title: String, _ name: String, _ day: Day) {
        element("div") { html in
            html.element("label", [("for", name)], title)
            html.open(
                "input",
                [
                    ("id", name), ("name", name), ("type", "date"), ("value", day.name),
                    ("required", ""),
                ]
            )
        }
    }
}
