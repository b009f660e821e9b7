// Shrinks a failing history to a short one that fails in the same way.

/// Removes steps as long as the same invariant breaks.
package struct Shrink {
    private var plan: Plan
    private let invariant: String
    private var tries: Int

    /// Returns the shortest history found.
    package static func shortest(_ plan: Plan, _ violation: Violation, step: Int, tries: Int = 600)
        -> Plan
    {
        var shrink = Shrink(plan: plan, invariant: violation.invariant, tries: tries)
        if step >= 0, step < plan.steps.count {
            shrink.attempt(Array(plan.steps.prefix(step + 1)))
        }
        shrink.leaveOut()
        shrink.makeSmall()
        return shrink.plan
    }

    @discardableResult private mutating func attempt(_ steps: [Step], auditEvery: Int? = nil)
        -> Bool
    {
        guard tries > 0 else { return false }
        tries -= 1
        var candidate = plan
        candidate.steps = steps
        guard let (found, step) = World(candidate).run(), found.invariant == invariant else {
            return false
        }
        plan = candidate
        if step >= 0, step < steps.count { plan.steps = Array(steps.prefix(step + 1)) }
        return true
    }

    private mutating func leaveOut() {
        var size = max(1, plan.steps.count / 2)
        while size >= 1 {
            var start = 0
            while start < plan.steps.count {
                var steps = plan.steps
                steps.removeSubrange(start..<min(start + size, steps.count))
                if !attempt(steps) { start += size }
            }
            size /= 2
        }
    }

    private mutating func makeSmall() {
        for place in plan.steps.indices {
            for amount in [0, 1, plan.steps[min(place, plan.steps.count - 1)].amount / 2] {
                guard place < plan.steps.count, plan.steps[place].amount > amount else { break }
                var steps = plan.steps
                steps[place].amount = amount
                if attempt(steps) { break }
            }
        }
    }
}
