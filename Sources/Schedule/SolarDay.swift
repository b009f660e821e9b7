// The sun's times on one day, by the equations of NOAA's solar calculator (Meeus, Astronomical
// Algorithms, chapters 25 and 28).
import Glibc
package import Host

/// An event of the sun's day, in the order in which they happen.
package enum SunEvent: String, Sendable, CaseIterable {
    /// The sun is 6 degrees below the horizon (civil dawn).
    case dawn
    /// The sun's upper edge appears.
    case sunrise
    /// The sun is highest.
    case noon
    case sunset
    /// Civil dusk.
    case dusk

    /// Its place in the day.
    package var order: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// Its time on a day of twelve hours, after midnight.
    var usual: Duration {
        switch self {
        case .dawn: .seconds(5.6 * 3600)
        case .sunrise: .seconds(6 * 3600)
        case .noon: .seconds(12 * 3600)
        case .sunset: .seconds(18 * 3600)
        case .dusk: .seconds(18.4 * 3600)
        }
    }

    /// The height of the sun's centre in degrees, as almanacs have it; nil for noon.
    ///
    /// At sunrise 34' of refraction and 16' to the upper edge; without refraction at dawn.
    fileprivate var height: Double? {
        switch self {
        case .noon: nil
        case .sunrise, .sunset: -0.833
        case .dawn, .dusk: -6
        }
    }
}

/// The day around one solar noon at a place: its sunrise comes before that noon, its sunset after.
package struct SolarDay: Sendable {
    /// The date of that noon at the place, by mean solar time, in days since 1970-01-01.
    package let number: Int64
    private let position: SitePosition

    package init(_ number: Int64, at position: SitePosition) {
        self.number = number
        self.position = position
    }

    /// The time of an event, to the second.
    ///
    /// Where the sun stays above the event's height, the event is at the midnight before noon (dawn,
    /// sunrise) or after it (sunset, dusk); where it stays below, at noon.
    package subscript(_ event: SunEvent) -> WallTime {
        guard let height = event.height, isAbove(height, at: noon) else { return time(noon) }
        // Half-way between two noons, so that one night's end and the next one's start agree.
        let step: Double = event.order < SunEvent.noon.order ? -1 : 1
        let other = SolarDay(number + Int64(step), at: position).noon + step * 1440
        var (above, below) = (noon, (noon + other) / 2)
        guard !isAbove(height, at: below) else { return time(below) }
        // At the end of a polar day the sun's way of an hour decides, so the time is narrowed down.
        while abs(above - below) > 0.001 {
            let middle = (above + below) / 2
            if isAbove(height, at: middle) { above = middle } else { below = middle }
        }
        return time(above)
    }

    /// Solar noon in minutes after midnight UTC.
    private var noon: Double {
        let mean = 720 - 4 * position.longitude
        return mean - sun(at: mean).equationOfTime
    }

    /// Returns whether the sun's centre is above a height at so many minutes after midnight UTC.
    private func isAbove(_ height: Double, at minutes: Double) -> Bool {
        let (sun, radians) = (sun(at: minutes), Double.pi / 180)
        let angle = (minutes - 720 + 4 * position.longitude + sun.equationOfTime) / 4 * radians
        let latitude = position.latitude * radians
        return sin(latitude) * sin(sun.declination)
            + cos(latitude) * cos(sun.declination) * cos(angle) > sin(height * radians)
    }

    private func sun(at minutes: Double) -> SunPlace {
        let days = Double(number) + minutes / 1440
        return SunPlace(century: (days + 2_440_587.5 - 2_451_545) / 36_525)
    }

    private func time(_ minutes: Double) -> WallTime {
        let seconds = number * 86_400 + Int64((minutes * 60).rounded())
        return WallTime(milliseconds: seconds * 1000)
    }
}

/// Where the sun is, seen from Earth, in a fraction of a Julian century after 2000-01-01 12:00.
private struct SunPlace {
    /// Radians north of the equator.
    let declination: Double
    /// Minutes by which the sun is ahead of mean time.
    let equationOfTime: Double

    init(century t: Double) {
        let radians = Double.pi / 180
        let longitude = 280.46646 + t * (36_000.76983 + 0.000_303_2 * t)
        let anomaly = (357.52911 + t * (35_999.05029 - 0.000_153_7 * t)) * radians
        let eccentricity = 0.016_708_634 - t * (0.000_042_037 + 0.000_000_126_7 * t)
        let center =
            sin(anomaly) * (1.914_602 - t * (0.004_817 + 0.000_014 * t))
            + sin(2 * anomaly) * (0.019_993 - 0.000_101 * t) + sin(3 * anomaly) * 0.000_289
        let omega = (125.04 - 1934.136 * t) * radians
        let apparent = (longitude + center - 0.00569 - 0.00478 * sin(omega)) * radians
        let seconds = 21.448 - t * (46.815 + t * (0.000_59 - t * 0.001_813))
        let obliquity = (23 + (26 + seconds / 60) / 60 + 0.00256 * cos(omega)) * radians
        declination = asin(sin(obliquity) * sin(apparent))
        let tangent = tan(obliquity / 2)
        let y = tangent * tangent
        let mean = longitude * radians
        let equation =
            y * sin(2 * mean) - 2 * eccentricity * sin(anomaly)
            + 4 * eccentricity * y * sin(anomaly) * cos(2 * mean) - 0.5 * y * y * sin(4 * mean)
            - 1.25 * eccentricity * eccentricity * sin(2 * anomaly)
        equationOfTime = equation / radians * 4
    }
}
