// Two who vouch for the time, and tell different ones.
import Host
import Records

/// Whose time is believed, and whose is not.
package struct ClockContradiction: Sendable, Equatable {
    var believed: ClockSource
    var time: WallTime
    var other: ClockSource
    /// What the other one says, or said before, of the same moment.
    var otherTime: WallTime

    /// As an event has it.
    var detail: [(key: String, value: EventValue)] {
        let offset = Double(time.milliseconds &- otherTime.milliseconds) / 1000
        return [
            ("by", .text(believed.shortName)), ("time", .time(time)),
            ("contradicts", .text(other.shortName)), ("its_time", .time(otherTime)),
            ("offset_s", .number(offset)),
        ]
    }

    /// The same words each time, for a list that counts.
    var summary: String {
        other == believed
            ? "clock: \(believed.name) tells another time than before"
            : "clock: \(believed.name) and \(other.name) tell different times"
    }

    /// As a person is told.
    var message: String {
        let theirs = other == believed ? "said" : "\(other.name) says"
        let before = other == believed ? " before" : ""
        return "\(believed.name) says \(time.rfc3339), \(theirs) \(otherTime.rfc3339)\(before); "
            + "the first is believed: find out which is wrong"
    }
}

extension ClockSource {
    /// In events.
    var shortName: String {
        switch self {
        case .kernel: "ntp"
        case .gpsd: "gpsd"
        }
    }

    fileprivate var name: String {
        switch self {
        case .kernel: "NTP"
        case .gpsd: "the receiver behind gpsd"
        }
    }
}

/// Whether those who vouch for the time agree; a pure value.
///
/// A contradiction is told when it is first seen, and once an hour while it comes and goes. It stands until they agree,
/// or for an hour after it was last seen: a receiver may have been taken away.
struct ClockDispute {
    private static let pause = Duration.seconds(3600)

    private(set) var contradiction: ClockContradiction?
    private var seenAt = BootInstant(nanoseconds: 0)
    private var told: [Pair: BootInstant] = [:]

    private struct Pair: Hashable {
        var believed: ClockSource
        var other: ClockSource
    }

    /// Takes it in; true when it is to be told.
    mutating func note(_ new: ClockContradiction, at now: BootInstant) -> Bool {
        let pair = Pair(believed: new.believed, other: new.other)
        contradiction = new
        seenAt = now
        if let last = told[pair], now - last < Self.pause { return false }
        told[pair] = now
        return true
    }

    func isAbout(_ believed: ClockSource, _ other: ClockSource) -> Bool {
        contradiction?.believed == believed && contradiction?.other == other
    }

    /// It is seen once more.
    mutating func goesOn(at now: BootInstant) { seenAt = now }

    mutating func ends() { contradiction = nil }

    mutating func check(at now: BootInstant) {
        if now - seenAt >= Self.pause { ends() }
    }
}
