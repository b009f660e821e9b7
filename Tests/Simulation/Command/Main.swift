// Runs simulated worlds, one after another.
import Glibc
import Simulation

@main
struct Simulate {
    static func main() {
        guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
            print("usage: deploy/simulate [--seeds N] [--from SEED] [--hours H] [--log]")
            exit(64)
        }
        World.useOneThread()
        if let hours = options.hours { return live(hours, options) }
        exit(run(options) ? 0 : 1)
    }

    /// Runs all seeds; returns true if none fails.
    private static func run(_ options: Options) -> Bool {
        var failures: [String: Int] = [:]
        let view = View()
        for number in 0..<options.seeds {
            let plan = options.plan(options.from + UInt64(number) * options.every)
            if number % 20 == 19 { report("progress \(number + 1)") }
            let world = World(plan, view: view)
            if options.isLogged { world.log = { print($0) } }
            guard let (violation, step) = world.run() else { continue }
            if options.stops {
                print("\(number + 1)|\(violation.invariant)")
                return false
            }
            failures[violation.invariant, default: 0] += 1
            print("seed \(plan.seed), step \(step): \(brief(violation))")
            if failures[violation.invariant] == 1, !options.isLogged {
                show(Shrink.shortest(plan, violation, step: step))
            }
        }
        for (name, count) in failures.sorted(by: { $0.key < $1.key }) {
            print("failed \(count) \(name)")
        }
        print("ran \(options.seeds)")
        return failures.isEmpty
    }

    /// Prints a line at once, also to a pipe.
    private static func report(_ line: String) {
        print(line)
        fflush(nil)
    }

    private static func brief(_ violation: Violation) -> String {
        String(String(describing: violation).prefix(600))
    }

    /// Prints a failing history, one line per step.
    private static func show(_ plan: Plan) {
        print("  \(String(describing: plan).prefix { !$0.isNewline })")
        let world = World(plan)
        world.log = { print("  \($0)") }
        if let (violation, step) = world.run() { print("  step \(step): \(brief(violation))") }
        print("  reproduce with deploy/simulate --seeds 1 --from \(plan.seed)")
    }

    private static func live(_ hours: Int, _ options: Options) {
        let world = World(options.plan(options.from))
        let clock = ContinuousClock()
        let start = clock.now
        let violation = world.live(hours: hours)
        let took = clock.now - start
        print("\(hours) hours in \(took); \(world.summary)")
        guard let violation else { return }
        print(brief(violation))
        exit(1)
    }
}
