// Measures the gateway and its board for some minutes.
package import Host
package import Status

/// The samples of a measurement, and what follows from them.
package struct BoardMeasurement: Sendable {
    let files: SystemFiles
    let began: WallTime
    let samples: [BoardSample]

    /// The time between two samples, as in the benchmark of Greengrass nucleus lite.
    private static let interval = Duration.seconds(10)

    /// Takes samples for `time`, the first one now.
    ///
    /// `ask` sends `measure` on a new connection. `wait` gets a pause and the time that is left.
    /// Throws a Failure if the gateway was restarted, because that resets its counters.
    package init(
        for time: Duration,
        _ files: SystemFiles = SystemFiles(),
        clock: any HostClock = SystemClock(),
        ask: () throws -> ControlReply,
        wait: (_ pause: Duration, _ left: Duration) -> Void
    ) throws {
        (self.files, began) = (files, clock.wall())
        let first = try BoardSample(try ask(), files, clock)
        var samples = [first]
        while case let left = time - (clock.now() - first.at), left > .zero {
            wait(min(left, Self.interval), left)
            do {
                samples.append(try BoardSample(try ask(), files, clock))
            } catch let error as ControlError {
                throw Failure("the gateway stopped answering during the measurement: \(error)")
            }
            try Self.expectSameRun(first.gateway, samples[samples.count - 1].gateway)
        }
        self.samples = samples
    }

    private static func expectSameRun(_ old: GatewayFigures, _ new: GatewayFigures) throws {
        guard (old.pid, old.startedS) == (new.pid, new.startedS) else {
            let pids = "process \(old.pid), then \(new.pid)"
            throw Failure("the gateway was restarted (\(pids)); start the measurement again")
        }
    }

    var first: BoardSample { samples[0] }
    var last: BoardSample { samples[samples.count - 1] }
    var seconds: Double { (last.at - first.at).inSeconds }

    /// Returns by how much a counter grew; nil if it could not be read at some time, or was reset.
    func growth(_ counter: (BoardSample) -> Int64?) -> Int64? {
        let values = samples.compactMap(counter)
        let isWhole = values.count == samples.count && values == values.sorted()
        return isWhole ? values[values.count - 1] - values[0] : nil
    }

    /// The wake-ups by thread name, of threads that were there all the time.
    var wakeups: [String: Int64] {
        let before = Dictionary(first.gateway.threads.map { ($0.id, $0.wakeups) }) { $1 }
        return last.gateway.threads.reduce(into: [:]) { all, thread in
            if let old = before[thread.id] { all[thread.name, default: 0] += thread.wakeups - old }
        }
    }

    /// By how many ppm the board's clock is fast against GNSS; nil with fewer than 20 times of it.
    ///
    /// A fix comes with a varying delay, so this compares the medians of both halves.
    var gnssDrift: Double? {
        // Without a fix the gateway gives the last time once more.
        let fresh = samples.indices.dropFirst().filter {
            samples[$0].gateway.gnssBootNs != samples[$0 - 1].gateway.gnssBootNs
        }
        let timed = fresh.compactMap { place in
            samples[place].gnssOffset.map { (samples[place].at, $0) }
        }
        let half = timed.count / 2
        guard half >= 10 else { return nil }
        let (old, new) = (timed.prefix(half), timed.suffix(half))
        let gained = median(old.map(\.1)) - median(new.map(\.1))
        return gained / Double((new[new.startIndex].0 - old[0].0).nanoseconds) * 1e6
    }
}

/// Returns the upper median of at least one value.
func median<Value: Comparable>(_ values: [Value]) -> Value { values.sorted()[values.count / 2] }
