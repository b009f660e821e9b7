// How many gaps of sound are told of one by one.
import Host

/// The first gaps of an hour have events of their own; a broken cable makes one a second, for weeks.
struct GapEvents {
    static let limit = 12
    private static let hour = Duration.seconds(3600)

    private var began: BootInstant?
    private var told = 0

    mutating func isToBeTold(at now: BootInstant) -> Bool {
        if let began, now - began >= Self.hour { self.began = nil }
        if began == nil { (began, told) = (now, 0) }
        told += 1
        return told <= Self.limit
    }
}
