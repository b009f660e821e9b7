// The cap on bytes a second, over requests and not only within one.
import Host

/// Says how long the next request must wait for the bytes of those before it.
///
/// libcurl limits each request by itself, and what fits into its buffer goes at once: a backlog of small
/// batches would know no limit.
struct RateLimit: Sendable {
    private let bytesPerSecond: Int?
    private var freeAt: BootInstant?

    /// nil for no limit.
    init(bytesPerSecond: Int?) {
        self.bytesPerSecond = bytesPerSecond
    }

    /// Bytes that went out in a request which began at `start`.
    mutating func sent(_ bytes: Int64, from start: BootInstant) {
        guard let bytesPerSecond, bytesPerSecond > 0, bytes > 0 else { return }
        freeAt = start + .milliseconds(Int64(Double(bytes) / Double(bytesPerSecond) * 1000))
    }

    /// How long until the next request may begin.
    func delay(at now: BootInstant) -> Duration {
        freeAt.map { max(.zero, $0 - now) } ?? .zero
    }
}
