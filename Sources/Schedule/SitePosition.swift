// A place on Earth, as precise as the sun's times need.
import Host

/// Latitude and longitude in degrees, WGS 84.
package struct SitePosition: Sendable, Equatable {
    package var latitude: Double
    package var longitude: Double

    /// Returns nil unless both are numbers in range.
    package init?(latitude: Double, longitude: Double) {
        guard abs(latitude) <= 90, abs(longitude) <= 180 else { return nil }
        (self.latitude, self.longitude) = (latitude, longitude)
    }

    /// The example in the documentation.
    package static let example = Self(46.46, 6.84)

    private init(_ latitude: Double, _ longitude: Double) {
        (self.latitude, self.longitude) = (latitude, longitude)
    }

    /// Parses `46.46,6.84`: latitude and longitude in decimal degrees; nil for anything else.
    package init?(_ text: String) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        let digits = parts.map { part in part.drop { $0 == " " } }
        guard digits.count == 2,
            digits.allSatisfy({ $0.utf8.allSatisfy { "+-.0123456789".utf8.contains($0) } }),
            let latitude = Double(digits[0]), let longitude = Double(digits[1])
        else { return nil }
        self.init(latitude: latitude, longitude: longitude)
    }

    /// The form that `init` parses.
    package var text: String { "\(latitude),\(longitude)" }

    /// The position to a hundredth of a degree, about a kilometre.
    package var rounded: Self {
        var place = self
        place.latitude = (latitude * 100).rounded() / 100
        place.longitude = (longitude * 100).rounded() / 100
        return place
    }

    /// Returns the distance in metres on a sphere.
    package func distance(to other: Self) -> Double {
        metres(from: (latitude, longitude), to: (other.latitude, other.longitude))
    }
}
