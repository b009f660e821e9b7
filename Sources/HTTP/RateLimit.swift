// Limits the upload rate in bytes per second, across requests.
import Host

/// Calculates how long the next request must wait for the bytes of earlier ones.
///
/// libcurl limits each request separately and sends whatever fits into its buffer at once, so it
/// would not limit a backlog of small batches.
struct RateLimit: Sendable {
    private let bytesPerSecond: Int?
    private var freeAt: BootInstant?

    /// Creates a limiter; nil means no limit.
    init(bytesPerSecond: Int?) {
        self.bytesPerSecond = bytesPerSecond
    }

    /// Counts bytes that were sent in a request which began at `start`.
    mutating func sent(_ bytes: Int64, from start: BootInstant) {
        guard let bytesPerSecond, bytesPerSecond > 0, bytes > 0 else { return }
        freeAt = start + .milliseconds(Int64(Double(bytes) / Double(bytesPerSecond) * 1000))
    }

    /// Returns how long to wait before the next request may begin.
    func delay(at now: BootInstant) -> Duration {
        freeAt.map { max(.zero, $0 - now) } ?? .zero
    }
}
