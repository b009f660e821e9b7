// Decides when unusable data puts a source in error.
import Host

/// Detects a source that receives only unusable data; a pure value.
struct UnusableData {
    /// A source that receives nothing else for this long is in error.
    private static let limit = Duration.seconds(60)
    /// After a longer pause a new incident begins.
    private static let pause = Duration.seconds(30)

    private var since: BootInstant?
    private var last = BootInstant(nanoseconds: 0)
    /// Why the source is in error; nil while it is not.
    var failure: Failure?

    /// Records unusable data; returns true once, when it puts the source in error.
    mutating func record(at now: BootInstant) -> Bool {
        if !goesOn(at: now) { since = now }
        last = now
        return failure == nil && since.map { now - $0 >= Self.limit } ?? false
    }

    /// Returns true if unusable data arrived recently and nothing usable since.
    func goesOn(at now: BootInstant) -> Bool { since != nil && now - last < Self.pause }
}
