// The command line options.
import Simulation

/// `waypost-simulate [--seeds N] [--from SEED] [--every K] [--hours H] [--log] [--stop] [--undamaged] [--budget]`.
struct Options {
    var seeds = 200
    var from: UInt64 = 1
    /// Runs only each K-th seed; other processes run the others.
    var every: UInt64 = 1
    /// Hours of a quiet device, instead of histories.
    var hours: Int?
    var isLogged = false
    /// Ends at the first failure and prints the number of seeds it took.
    var stops = false
    var hasDamage = true
    /// Each history has a daily byte budget.
    var hasBudget = false

    /// Parses the arguments; nil if they are invalid.
    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            switch name {
            case "--log": isLogged = true
            case "--stop": stops = true
            case "--undamaged": hasDamage = false
            case "--budget": hasBudget = true
            default:
                guard let value = rest.popFirst().flatMap({ UInt64($0) }) else { return nil }
                switch name {
                case "--seeds": seeds = Int(value)
                case "--from": from = value
                case "--every": every = max(1, value)
                case "--hours": hours = Int(value)
                default: return nil
                }
            }
        }
    }

    func plan(_ seed: UInt64) -> Plan {
        var plan = Plan(seed: seed)
        plan.allowsDamage = hasDamage
        return hasBudget ? plan.withBudget() : plan
    }
}
