// Distances on the Earth.
import Glibc

/// Returns the haversine distance of two places in metres, on a sphere with a radius of 6,371,009 m.
///
/// Degrees north and east.
package func metres(
    from: (latitude: Double, longitude: Double),
    to: (latitude: Double, longitude: Double)
) -> Double {
    let radians = Double.pi / 180
    let north = sin((to.latitude - from.latitude) * radians / 2)
    let east = sin((to.longitude - from.longitude) * radians / 2)
    let chord =
        north * north + cos(from.latitude * radians) * cos(to.latitude * radians) * east * east
    return 2 * 6_371_009 * asin(min(1, chord.squareRoot()))
}
