// The live output of one configuration, and what feeds it.
import Beacons
import HTTP
import Host
import Live
import MQTT
import Queue
import Records
import Setup
import Status
import StatusBoard

/// The settings of the live output; it restarts when they change.
struct LiveSlice: Sendable, Equatable {
    var live: LiveSettings
    var broker: BrokerSettings
    var endpoint: Endpoint
    /// An allow list names the beacons that are collected.
    var isFiltered: Bool

    /// nil if nothing is published.
    init?(_ configuration: Configuration) {
        guard configuration.live.publishes, let endpoint = configuration.mqtt.endpoint else {
            return nil
        }
        (live, broker, self.endpoint) = (configuration.live, configuration.mqtt, endpoint)
        isFiltered = !configuration.beacons.allow.isEmpty
    }
}

/// The live output from its start to its stop.
final class LiveRun: Sendable {
    let slice: LiveSlice
    let output: LiveOutput
    let thread: StoppableThread

    /// Starts the thread.
    init(_ slice: LiveSlice, _ context: ServiceContext) throws {
        let (queue, clock, log) = (context.queue, context.clock, context.log)
        let output = try LiveOutput(
            slice.live,
            slice.broker,
            at: slice.endpoint,
            environment: context.environment,
            device: LiveDevice(id: context.deviceID, version: context.version),
            isFiltered: slice.isFiltered,
            clock: clock,
            date: { stamp in
                guard let right = queue.rightTime(at: stamp) else { return (stamp.wall, .unsynced) }
                return (right, right == stamp.wall ? .synced : .corrected)
            },
            rest: { stop, limit in Self.rest(until: stop, limit, clock) },
            onChange: { failure in
                guard let failure else {
                    return log.info("mqtt", ["connected to": slice.endpoint.server])
                }
                log.warning("mqtt", ["why": failure.description])
            }
        )
        (self.slice, self.output) = (slice, output)
        thread = try StoppableThread("mqtt") { output.run(until: $0) }
        context.live.update { $0 = output.tap }
    }

    /// Waits until `limit` is over, the network has changed or `stop` is raised.
    private static func rest(until stop: StopSignal, _ limit: Duration, _ clock: any HostClock) {
        let over = clock.now() + limit
        // Without it, the limit alone ends the wait.
        let network = try? NetworkSocket(stop.life)
        var change = Debounce()
        while !stop.isRaised, clock.now() < over {
            let due = change.due.map { BootInstant(nanoseconds: $0 * 1_000_000) } ?? over
            var entries = [PollEntry(stop.descriptor), PollEntry(network?.descriptor ?? -1)]
            _ = stop.wait(for: &entries, timeout: max(.zero, min(due, over) - clock.now()))
            if entries[1].isReady, network?.readNews(stop.life) == true {
                change.changed(at: clock.now().milliseconds)
            }
            if change.isOver(at: clock.now().milliseconds) { return }
        }
    }

    /// Wakes the thread once, so that it gives a heartbeat.
    func ask() {
        thread.life.asked()
        output.tap.wakeup.signal()
    }
}
