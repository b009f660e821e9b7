// Two time sources that contradict each other: the kernel's NTP client and a GNSS receiver.
package import Host
package import Records

/// A contradiction between two time sources: the one that is believed, and the other one.
package struct ClockContradiction: Sendable, Equatable {
    package var believed: ClockSource
    package var time: WallTime
    package var other: ClockSource
    /// The time of the other source at the same moment, or what the same source said before.
    package var otherTime: WallTime

    package init(believed: ClockSource, time: WallTime, other: ClockSource, otherTime: WallTime) {
        self.believed = believed
        self.time = time
        self.other = other
        self.otherTime = otherTime
    }

    /// The fields of the event.
    package var detail: [(key: String, value: EventValue)] {
        let offset = Double(time.milliseconds &- otherTime.milliseconds) / 1000
        return [
            ("by", .text(believed.shortName)), ("time", .time(time)),
            ("contradicts", .text(other.shortName)), ("its_time", .time(otherTime)),
            ("offset_s", .number(offset)),
        ]
    }

    /// The message for the list of errors, which counts equal texts: it contains no times.
    package var summary: String {
        other == believed
            ? "clock: \(believed.name) reports another time than before"
            : "clock: \(believed.name) and \(other.name) report different times"
    }

    /// The message for a person, with both times.
    package var message: String {
        let theirs = other == believed ? "said" : "\(other.name) says"
        let before = other == believed ? " before" : ""
        return "\(believed.name) says \(time.rfc3339), \(theirs) \(otherTime.rfc3339)\(before); "
            + "the first is believed: find out which is wrong"
    }
}

extension ClockSource {
    /// The name in events.
    package var shortName: String {
        switch self {
        case .kernel: "ntp"
        case .gpsd: "gpsd"
        }
    }

    fileprivate var name: String {
        switch self {
        case .kernel: "NTP"
        case .gpsd: "the GNSS receiver behind gpsd"
        }
    }
}

/// Tracks whether the time sources agree; a pure value.
///
/// A contradiction is reported when it is first seen, and once per hour while it comes and goes. It
/// lasts until the sources agree, or for an hour after it was last seen: a GNSS receiver may have
/// been unplugged.
package struct ClockDispute {
    private static let pause = Duration.seconds(3600)

    package private(set) var contradiction: ClockContradiction?
    private var seenAt = BootInstant(nanoseconds: 0)
    private var reported: [Pair: BootInstant] = [:]

    package init(contradiction: ClockContradiction? = nil) {
        self.contradiction = contradiction
    }

    private struct Pair: Hashable {
        var believed: ClockSource
        var other: ClockSource
    }

    /// Records a contradiction; returns true if it must be reported.
    package mutating func record(_ new: ClockContradiction, at now: BootInstant) -> Bool {
        let pair = Pair(believed: new.believed, other: new.other)
        contradiction = new
        seenAt = now
        if let last = reported[pair], now - last < Self.pause { return false }
        reported[pair] = now
        return true
    }

    package func isAbout(_ believed: ClockSource, _ other: ClockSource) -> Bool {
        contradiction?.believed == believed && contradiction?.other == other
    }

    /// Records that the contradiction was seen once more.
    package mutating func goesOn(at now: BootInstant) { seenAt = now }

    package mutating func ends() { contradiction = nil }

    package mutating func check(at now: BootInstant) {
        if now - seenAt >= Self.pause { ends() }
    }
}
