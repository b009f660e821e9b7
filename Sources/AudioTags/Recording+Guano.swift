// The fields of GUANO 1.0 (guano-md.org), which bat and bird software reads.

extension Recording {
    /// The field of GUANO that other formats have as a comment.
    static let comment = "Note"

    /// The fields in order: `GUANO|Version` first, our own under `Waypost|`, then the site's.
    ///
    /// A field of the site takes the place of ours of that name.
    package var guano: [(key: String, value: String)] {
        var fields = [("GUANO|Version", "1.0"), ("Timestamp", timestamp)]
        if let place {
            fields.append(("Loc Position", "\(plain(place.latitude)) \(plain(place.longitude))"))
            if let accuracy = place.accuracy { fields.append(("Loc Accuracy", "\(accuracy)")) }
            if let altitude = place.altitude { fields.append(("Loc Elevation", "\(altitude)")) }
        }
        fields.append(("Make", "Waypost"))
        fields.append(("Model", model ?? "field gateway"))
        fields.append(("Serial", device))
        if let firmware { fields.append(("Firmware Version", firmware)) }
        if let rate { fields.append(("Samplerate", "\(rate)")) }
        if let duration { fields.append(("Length", "\(duration)")) }
        if let overlap { fields.append(("Waypost|Overlap", "\(overlap)")) }
        if let clock { fields.append(("Waypost|Clock", clock)) }
        if let recordID { fields.append(("Waypost|Record ID", recordID)) }
        if let microphone { fields.append(("Waypost|Microphone", microphone)) }
        if let deviceRate { fields.append(("Waypost|Device Rate", "\(deviceRate)")) }
        if let site { fields.append(("Waypost|Site", site)) }
        fields.append((Self.comment, note))
        fields.removeAll { siteFields[$0.0] != nil }
        fields += siteFields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return fields.map { ($0, oneLine($1)) }
    }

    /// A sentence for programs and people that read a comment only.
    private var note: String {
        var text = "Recorded at \(timestamp) by Waypost \(device)"
        if let site { text += " at \(site)" }
        if let place { text += " (\(plain(place.latitude)) \(plain(place.longitude)))" }
        if let microphone { text += " with \(microphone)" }
        if let deviceRate {
            text += ", device_rate \(deviceRate) Hz: nothing above \(deviceRate / 2) Hz"
        }
        return clock == "unsynced" ? text + ", by a clock that was not set" : text
    }

    /// Returns degrees with seven decimals and no plus sign.
    private func plain(_ value: Double) -> String {
        let text = degrees(value, 1, 7)
        return text.hasPrefix("+") ? String(text.dropFirst()) : text
    }

    /// Returns a value without control characters, which would begin another field.
    private func oneLine(_ value: String) -> String {
        let printable = value.unicodeScalars.map { $0.value < 32 || $0.value == 127 ? " " : $0 }
        return String(String.UnicodeScalarView(printable.prefix(1000)))
    }
}
