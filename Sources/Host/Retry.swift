// Backoff before a device or a server is tried again.

/// A backoff that grows with each failure up to the last step, with up to 20 % jitter.
package struct Retry: Sendable {
    private let steps: [Duration]
    private var failures = 0

    package init(_ steps: [Duration] = [1, 2, 5, 10, 30].map { Duration.seconds($0) }) {
        self.steps = steps
    }

    /// Returns the next delay: the current step, or up to a fifth less.
    package mutating func next(random: Double = .random(in: 0..<1)) -> Duration {
        let step = steps[min(failures, steps.count - 1)]
        failures += 1
        return step - .milliseconds(Int64(Double(step.milliseconds) * 0.2 * random))
    }

    package mutating func succeeded() { failures = 0 }
}
