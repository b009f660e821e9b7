// When data that cannot be used makes its source faulty.
import Host

/// Detects a source that receives data, none of which can be used; a pure value.
struct UnusableData {
    /// A source that receives nothing else for this long is in error.
    private static let limit = Duration.seconds(60)
    /// After a longer pause it is not the same incident.
    private static let pause = Duration.seconds(30)

    private var since: BootInstant?
    private var last = BootInstant(nanoseconds: 0)
    /// Why the source is in error; nil while it is not.
    var failure: Failure?

    /// Notes that such data came in; true once, when that makes the source faulty.
    mutating func note(at now: BootInstant) -> Bool {
        if !goesOn(at: now) { since = now }
        last = now
        return failure == nil && since.map { now - $0 >= Self.limit } ?? false
    }

    /// Whether such data has come in lately, and nothing else since.
    func goesOn(at now: BootInstant) -> Bool { since != nil && now - last < Self.pause }
}
