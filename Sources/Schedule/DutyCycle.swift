// A part of each period: `1m/10m` is the first minute of each ten.
import Configuration
package import Host

/// Open for the first part of each period, on a grid that begins at midnight UTC, 1970-01-01.
package struct DutyCycle: Sendable, Equatable {
    /// Milliseconds; `on` is shorter than `period`.
    let on: Int64
    let period: Int64

    /// Parses `1m/10m`: 1s to 24h, and the first part is the shorter one.
    package static func parse(_ text: String) -> Result<Self, MismatchError> {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false).map { trimmed($0) }
        guard parts.count == 2, let on = duration(of: parts[0]), let period = duration(of: parts[1])
        else {
            return .mismatch("\"\(printable(text))\" is not a duty cycle; write it as 1m/10m")
        }
        let range = Duration.seconds(1) ... .seconds(86_400)
        guard range.contains(on), range.contains(period) else {
            return .mismatch("\"\(printable(text))\" is out of range")
        }
        guard on < period else {
            return .mismatch(
                "\"\(printable(text))\" has no pause; take it out to record all the time"
            )
        }
        return .success(Self(on: on.milliseconds, period: period.milliseconds))
    }

    /// The form that `parse` reads.
    package var text: String {
        "\(durationText(.milliseconds(on)))/\(durationText(.milliseconds(period)))"
    }

    /// The part of the time that it is open.
    package var share: Double { Double(on) / Double(period) }

    /// Returns the start of the period that holds `time`.
    func start(at time: WallTime) -> WallTime {
        WallTime(milliseconds: time.milliseconds.floorDivided(by: period) * period)
    }

    /// Returns the end of the open part of the period that holds `time`, if that is later.
    func end(at time: WallTime) -> WallTime? {
        let end = WallTime(milliseconds: start(at: time).milliseconds + on)
        return time < end ? end : nil
    }

    func next(after time: WallTime) -> WallTime {
        WallTime(milliseconds: start(at: time).milliseconds + period)
    }

    /// Returns the open time between two times, in milliseconds.
    func length(from: WallTime, to: WallTime) -> Int64 {
        func open(_ time: WallTime) -> Int64 {
            let start = start(at: time).milliseconds
            return start / period * on + min(time.milliseconds - start, on)
        }
        return open(to) - open(from)
    }
}
