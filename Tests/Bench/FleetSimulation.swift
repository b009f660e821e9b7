// A fleet before, during and after an outage, on a virtual clock, with the gateway's own pacing.
import Daemon
import Host
import Upload

/// The fleet, the outage and the times of one simulation.
struct FleetPlan: Sendable {
    var gateways = 1000
    var interval = Duration.seconds(300)
    var before = Duration.seconds(3600)
    var outage = Duration.seconds(7200)
    var after = Duration.seconds(4 * 3600)
    var kind = OutageKind.refused
    var seed: UInt64 = 1

    var length: Duration { before + outage + after }
}

/// One gateway of the fleet: its own phase on the grid, its pacing, and what waits in its queue.
private struct SimulatedGateway {
    /// Bytes a second of each stream before compression: events, positions, beacons, sound.
    static let rates: [Double] = [0.2, 20, 2_500, 4_200]
    /// `upload.max_batch_bytes`.
    static let batchBytes = 8_388_608.0

    let grid: TimerGrid
    var pacing: Pacing
    /// The moment through which each stream is uploaded, in ms.
    var sentThrough: [Int64]
    /// The stream that the next sync begins with.
    var first = 0

    /// When it wakes next, and why.
    func next(after now: BootInstant) -> (at: BootInstant, reason: SyncReason) {
        let tick = grid.next(after: now)
        guard let until = pacing.until, until < tick else { return (tick, .tick) }
        return (max(until, now + .milliseconds(1)), .retry)
    }

    /// The end of a stream's next batch, in ms; nil when nothing waits.
    func batchEnd(_ stream: Int, through end: Int64) -> Int64? {
        guard sentThrough[stream] < end else { return nil }
        let whole = Int64(Self.batchBytes / Self.rates[stream] * 1000)
        return min(end, sentThrough[stream] + whole)
    }
}

/// Runs a plan; the same plan gives the same requests.
struct FleetSimulation {
    let plan: FleetPlan
    private let server: SimulatedServer
    private var random: SeededRandom
    private var gateways: [SimulatedGateway] = []
    /// Requests that reached, or tried to reach, the server: a count for each second.
    private(set) var requests: [Int]

    init(_ plan: FleetPlan) {
        self.plan = plan
        let start = BootInstant(nanoseconds: 0)
        let (from, to) = (start + plan.before, start + plan.before + plan.outage)
        server = SimulatedServer(kind: plan.kind, from: from, to: to)
        random = SeededRandom(seed: plan.seed)
        requests = [Int](repeating: 0, count: Int(plan.length.milliseconds / 1000))
        for _ in 0..<plan.gateways {
            let device = String(random.next(), radix: 16)
            gateways.append(
                SimulatedGateway(
                    grid: TimerGrid(interval: plan.interval, device: device),
                    pacing: Pacing(interval: plan.interval),
                    sentThrough: [0, 0, 0, 0]
                )
            )
        }
    }

    /// Gateways do not see each other, so each is taken through its whole life in turn.
    mutating func run() {
        for index in gateways.indices {
            var gateway = gateways[index]
            var now = BootInstant(nanoseconds: 0)
            while true {
                let (at, reason) = gateway.next(after: now)
                guard at.nanoseconds < plan.length.nanoseconds else { break }
                now = sync(&gateway, reason, at: at)
            }
            gateways[index] = gateway
        }
    }

    /// One sync as the uploader does it; when it ends.
    private mutating func sync(
        _ gateway: inout SimulatedGateway,
        _ reason: SyncReason,
        at start: BootInstant
    ) -> BootInstant {
        guard var left = .some(gateway.pacing.begin(reason, at: start)), left != 0 else {
            return start
        }
        var now = start
        var failure: Duration??
        streams: for place in 0..<4 {
            let stream = (gateway.first + place) % 4
            while let end = gateway.batchEnd(stream, through: start.milliseconds) {
                guard left != 0 else { break streams }
                left = left.map { $0 - 1 }
                count(at: now)
                let answer = server.answer(at: now)
                now = now + (plan.kind == .stalled && isAway(now) ? .seconds(30) : answer.takes)
                guard case .failed(let after, let isOfOneStream) = answer else {
                    gateway.sentThrough[stream] = end
                    continue
                }
                failure = .some(after)
                if isOfOneStream, !gateway.pacing.isFailing { continue streams }
                gateway.first = (stream + 1) % 4
                break streams
            }
        }
        end(&gateway, failure, isCut: left == 0, at: now)
        return now
    }

    private mutating func end(
        _ gateway: inout SimulatedGateway,
        _ failure: Duration??,
        isCut: Bool,
        at now: BootInstant
    ) {
        let chance = Double.random(in: 0..<1, using: &random)
        if let after = failure {
            gateway.pacing.failed(at: now, after: after, random: chance)
        } else if isCut {
            gateway.first = 0
            gateway.pacing.cut(at: now, random: chance)
        } else {
            gateway.first = 0
            gateway.pacing.succeeded()
        }
    }

    private func isAway(_ now: BootInstant) -> Bool { now >= server.from && now < server.to }

    private mutating func count(at now: BootInstant) {
        let second = Int(now.milliseconds / 1000)
        if second < requests.count { requests[second] += 1 }
    }

    /// Whether every gateway has caught up: nothing older than two intervals waits.
    var hasCaughtUp: Bool {
        let limit = (plan.length - plan.interval * 2).milliseconds
        return gateways.allSatisfy { $0.sentThrough.allSatisfy { $0 >= limit } }
    }
}
