// Sound that a device has recorded and that is not at the server, hour by hour; an editor asks for it.
import Host
import ServerArchive
import ServerBase
import ServerIndex
import ServerWeb

/// Sound of an hour (UTC) that effort calls recorded and the server does not have.
struct AbsentSound {
    /// When the hour begins, in ms since 1970.
    let from: Int64
    /// Milliseconds of it that are not here.
    var length: Int64
    /// The device has been asked for it, and has not answered.
    var isAsked = false

    fileprivate static let hour: Int64 = 3_600_000
    /// Less is the edge of a chunk.
    private static let least: Int64 = 60_000

    var to: Int64 { from + Self.hour }

    /// Returns the hours of a span in which less is here than was recorded; `here`: milliseconds by hour.
    static func hours(
        recorded: [Range<Int64>],
        here: [Int64: Int64],
        in time: Range<Int64>
    ) -> [AbsentSound] {
        var lengths: [Int64: Int64] = [:]
        for span in recorded.map({ $0.clamped(to: time) }) where !span.isEmpty {
            var hour = span.lowerBound.floorDivided(by: Self.hour) * Self.hour
            while hour < span.upperBound {
                let part = span.clamped(to: hour..<(hour + Self.hour))
                lengths[hour, default: 0] += part.upperBound - part.lowerBound
                hour += Self.hour
            }
        }
        return lengths.sorted { $0.key < $1.key }.compactMap { hour, length in
            let recorded = min(length, Self.hour)
            let absent = recorded - (here[hour] ?? 0)
            // A chunk across the hour counts for the one in which it begins.
            guard absent >= Self.least, absent > recorded / 20 else { return nil }
            return AbsentSound(from: hour, length: absent)
        }
    }
}

extension AudioSpan {
    /// How long the sound of each hour (UTC) is, without what chunks share; estimated from the mean of all.
    var lengths: [Int64: Int64] {
        let length = (series["duration"]?.mean ?? 0) - (series["overlap_duration"]?.mean ?? 0)
        guard length.isFinite, (0...86_400).contains(length) else { return [:] }
        return Dictionary(
            hours.map { ($0.time, Int64(Double(min($0.chunks, 1 << 20)) * length * 1000)) }
        ) { $0 + $1 }
    }
}

extension FleetRenderings {
    /// Returns what of the sound of up to some 26 hours is not here.
    func absentSound(
        of id: String,
        _ recorded: [Range<Int64>],
        _ parts: [SpanPage.Part],
        _ span: LocalSpan
    )
        throws -> [AbsentSound]
    {
        guard span.length <= AudioSpan.maxHours * AbsentSound.hour else { return [] }
        var here: [Int64: Int64] = [:]
        for case .sound(let sound) in parts.map(\.content) { here.merge(sound.lengths) { $0 + $1 } }
        _ = try jobs.refresh(waits: true)
        let asked = jobs.soundAsked(of: id)
        return AbsentSound.hours(recorded: recorded, here: here, in: span.time).map { sound in
            var sound = sound
            sound.isAsked = asked.contains(WallTime(milliseconds: sound.from).rfc3339)
            return sound
        }
    }

    /// Asks a device for the sound of an hour, and leads back to the page of the day.
    func askForSound(of id: String, from: String, days: String, zone: String, at now: Int64) throws
        -> HTTPAnswer
    {
        _ = try find(id)
        guard let start = WallTime(rfc3339: from), let days = DaySpan(days) else {
            throw HTTPError(status: 400, reason: "the form has no hour")
        }
        let end = WallTime(milliseconds: start.milliseconds + AbsentSound.hour)
        do {
            _ = try jobs.add(
                "audio",
                ["from": start.rfc3339, "to": end.rfc3339],
                of: id,
                until: WallTime(milliseconds: now) + Self.patience
            )
        } catch let failure as Failure {
            throw HTTPError(status: 409, reason: failure.message)
        }
        let query = "zone=\(FormField.written(String(zone.prefix(64))))"
        return HTTPAnswer(seeOther: "/device/\(id)/\(days.name)?\(query)")
    }
}

extension HTML {
    /// Lists the hours whose sound is not here; an editor gets a button for each.
    mutating func absent(
        _ sounds: [AbsentSound],
        of device: String,
        in span: LocalSpan,
        isEditor: Bool
    ) {
        guard !sounds.isEmpty else { return }
        element("h2", "Recorded, and not at the server")
        let words =
            "Sound that the device may still have: it waits there, or nobody has asked for it."
        element("p", [("class", "soft")], words)
        element("ul", [("class", "absent")]) { html in
            for sound in sounds {
                html.element("li") { html in
                    html.time(sound.from)
                    html.text(" \(Words.span(seconds: sound.length / 1000)) ")
                    if sound.isAsked {
                        html.element("span", [("class", "soft")], "asked for")
                    } else if isEditor {
                        html.ask(for: sound, of: device, in: span)
                    }
                }
            }
        }
    }

    private mutating func ask(for sound: AbsentSound, of device: String, in span: LocalSpan) {
        let form: [Attribute] = [
            ("class", "screen"), ("method", "post"), ("action", "/device/\(device)/sound"),
        ]
        element("form", form) { html in
            let fields: [(StaticString, String)] = [
                ("from", WallTime(milliseconds: sound.from).rfc3339), ("days", span.days.name),
                ("zone", span.zone.name),
            ]
            for (name, value) in fields {
                html.open("input", [("type", "hidden"), ("name", "\(name)"), ("value", value)])
            }
            html.element("button") { html in
                html.text("Ask for it")
                html.element("span", [("class", "hidden")], " of \(html.words(sound.from))")
            }
        }
    }
}
