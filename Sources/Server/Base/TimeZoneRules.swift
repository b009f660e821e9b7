// Time zones: UTC, a fixed offset, or one of the system's time zone database.
import Glibc
import Host

/// The offsets of a local time from UTC, and the local days that follow from them.
package struct TimeZoneRules: Sendable {
    /// The folder of Debian's package tzdata.
    package static let usualFolder = "/usr/share/zoneinfo"
    package static let utc = Self(name: "UTC", file: ZoneFile(offset: 0))
    /// Bytes of a name, and of a file: the longest that exist have 32 and 4 kB.
    private static let (maxName, maxFile) = (64, 64 << 10)

    /// `UTC`, an offset such as `+05:30`, or a name such as `Europe/Berlin`.
    package let name: String
    private let file: ZoneFile

    private init(name: String, file: ZoneFile) {
        (self.name, self.file) = (name, file)
    }

    /// Nil for a name that is not known, and for a file that is not valid.
    package init?(_ name: String, folder: String = Self.usualFolder) {
        let file =
            name == "UTC"
            ? ZoneFile(offset: 0)
            : Self.offset(name).map { ZoneFile(offset: $0) } ?? Self.read(name, in: folder)
        guard let file else { return nil }
        self.init(name: name, file: file)
    }

    /// Returns the seconds of `+05:30`; nil for any other text.
    private static func offset(_ text: String) -> Int64? {
        guard text.utf8.count == 6, let sign = text.first, "+-".contains(sign),
            let time = WallTime(rfc3339: "1970-01-02T00:00:00\(text)")
        else { return nil }
        return 86_400 - time.milliseconds / 1000
    }

    /// Reads a zone's file; the name comes from the address of a page.
    ///
    /// Many names of the database are symbolic links to others, so links are followed, but only to
    /// files of the same folder: a name has no dot, and the resolved path is checked.
    private static func read(_ name: String, in folder: String) -> ZoneFile? {
        let isPlain = name.utf8.allSatisfy { $0.isLetter || $0.isDigit || "_+-/".utf8.contains($0) }
        guard isPlain, name.utf8.count <= maxName, name.utf8.first?.isLetter == true,
            let top = resolved(folder), let path = resolved("\(folder)/\(name)"),
            path.hasPrefix(top + "/"),
            let found = try? SmallFile.read(path, limit: maxFile, followsLink: false),
            found.isRegular, found.bytes.count <= maxFile
        else { return nil }
        return ZoneFile(found.bytes)
    }

    private static func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    // MARK: Times, in milliseconds since 1970

    /// Formats the name for people: `UTC`, `UTC+05:30`, `Europe/Berlin`.
    package var title: String { name.first?.isLetter == true ? name : "UTC\(name)" }

    private func local(_ time: Int64) -> Int64 {
        time &+ file.offset(at: time.floorDivided(by: 1000)) * 1000
    }

    /// Formats `2026-11-22 16:20:05`.
    package func second(_ time: Int64) -> String { Words.second(local(time)) }

    /// Formats `2026-11-22 16:20`.
    package func minute(_ time: Int64) -> String { Words.minute(local(time)) }

    /// Returns the date at a time.
    package func day(of time: Int64) -> Day { Day(of: local(time)) }

    /// Formats the offset at a time: `UTC+02:00`.
    package func offset(at time: Int64) -> String {
        let minutes = file.offset(at: time.floorDivided(by: 1000)) / 60
        let (hours, rest) = abs(minutes).quotientAndRemainder(dividingBy: 60)
        return "UTC\(minutes < 0 ? "-" : "+")\(Words.twoDigits(hours)):\(Words.twoDigits(rest))"
    }

    /// Returns the first time from which a clock shows `hours` of a date, or later.
    ///
    /// A clock that is set forward may skip this hour, or a whole date.
    package func time(_ day: Day, hours: Int64 = 0) -> Int64 {
        let wanted = day.start + hours * 3_600_000
        // No zone is further from UTC than this.
        var (before, after) = (wanted / 1000 - 100_000, wanted / 1000 + 100_000)
        while after - before > 1 {
            let middle = (before + after) / 2
            if local(middle * 1000) >= wanted { after = middle } else { before = middle }
        }
        return after * 1000
    }
}
