// One recorded audio file: when, where and how it was made, and its name.
package import Host

/// The names of exported audio files.
package enum FileNames: String, CaseIterable, Sendable {
    /// With milliseconds, offset and position, as QutEcoacoustics' EMU parses them.
    case waypost
    /// `SITE_YYYYMMDD_HHMMSS`, as Song Meter recorders and the programs that know no other do.
    case songmeter
}

/// A recorded audio file: when, where and by which device it was made.
package struct Recording: Sendable {
    /// A place on the Earth (WGS 84).
    package struct Place: Sendable, Equatable {
        /// Degrees north and east.
        package var latitude: Double
        package var longitude: Double
        /// Metres.
        package var accuracy: Double?
        /// Metres above mean sea level.
        package var altitude: Double?

        package init(
            latitude: Double,
            longitude: Double,
            accuracy: Double? = nil,
            altitude: Double? = nil
        ) {
            (self.latitude, self.longitude) = (latitude, longitude)
            (self.accuracy, self.altitude) = (accuracy, altitude)
        }
    }

    package var device: String
    package var start: WallTime
    /// Minutes east of UTC of the times in name and metadata.
    package var offsetMinutes = 0
    package var place: Place?
    /// Samples per second.
    package var rate: Int?
    /// Seconds.
    package var duration: Double?
    /// The seconds at its start that the file before has, too.
    package var overlap: Double?
    /// `synced`, `corrected` or `unsynced` (waypost-protocol(7), RECORDS).
    package var clock: String?
    package var recordID: String?
    package var microphone: String?
    /// Samples per second of the microphone, if fewer than the file has.
    package var deviceRate: Int?
    /// The site's name, and its own fields of GUANO.
    package var site: String?
    package var siteFields: [String: String] = [:]
    package var firmware: String?
    /// The board's own name.
    package var model: String?

    package init(device: String, start: WallTime) {
        (self.device, self.start) = (device, start)
    }

    /// Returns `<device or site>_<YYYYMMDDTHHMMSS.ffffff±hhmm>_<±lat±lon>.<type>`, or as `names` say.
    ///
    /// Without a place its part is left out. The place is ISO 6709, annex H, in decimal degrees.
    /// `number`: of several files with one start; 1 is not written.
    package func fileName(type: String, number: Int = 1, names: FileNames = .waypost) -> String {
        let local = (start + .seconds(offsetMinutes * 60)).rfc3339
        let digits = String(local.unicodeScalars.filter { $0 != "-" && $0 != ":" && $0 != "Z" })
        let ending = (number > 1 ? "_\(number)" : "") + ".\(type)"
        var name = safe(site ?? device)
        if names == .songmeter {
            return "\(name)_\(digits.prefix(8))_\(digits.dropFirst(9).prefix(6))\(ending)"
        }
        let zone = offset(separator: "")
        let position = place.map {
            "_\(degrees($0.latitude, 2, 5))\(degrees($0.longitude, 3, 5))"
        }
        // EMU takes `-12-34` for a position if there is none.
        let parts = name.split(separator: "-")
        if place == nil, parts.dropFirst().dropLast().contains(where: { Double($0) ?? 100 < 100 }) {
            name = parts.joined(separator: "_")
        }
        return "\(name)_\(digits)000\(zone)\(position ?? "")\(ending)"
    }

    /// Returns the start in local time with its offset, as ISO 8601 has it.
    var timestamp: String {
        let local = (start + .seconds(offsetMinutes * 60)).rfc3339
        return String(local.dropLast()) + offset(separator: ":")
    }

    private func offset(separator: String) -> String {
        let minutes = offsetMinutes.magnitude
        return (offsetMinutes < 0 ? "-" : "+") + padded(minutes / 60, 2) + separator
            + padded(minutes % 60, 2)
    }

    /// Returns a device's name with `-` for anything but letters, digits, `-`, `.` and `_`.
    private func safe(_ name: String) -> String {
        let plain = name.unicodeScalars.map { scalar -> Character in
            let isPlain =
                scalar.isASCII
                && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
            return isPlain || scalar == "-" || scalar == "." || scalar == "_"
                ? Character(scalar) : "-"
        }
        // No hidden file and no way out of the folder.
        let text = String(plain.drop { $0 == "." }.prefix(64))
        return text.isEmpty ? "device" : text
    }
}

/// Returns signed degrees with so many digits before and after the point: `+06.84000`.
func degrees(_ value: Double, _ whole: Int, _ decimals: Int) -> String {
    var scale = 1.0
    for _ in 0..<decimals { scale *= 10 }
    // Coordinates beyond the Earth, or no numbers, become 0: the caller checks them.
    let scaled = (value * scale).rounded()
    let units = scaled.magnitude < 1e12 ? UInt(scaled.magnitude) : 0
    let (degrees, rest) = units.quotientAndRemainder(dividingBy: UInt(scale))
    return (scaled < 0 ? "-" : "+") + padded(degrees, whole) + "." + padded(rest, decimals)
}

private func padded(_ number: UInt, _ width: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
}
