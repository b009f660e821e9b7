// The whole source, running, and what it made of its input.
import Configuration
import Host
import Queue
import Records
import StatusBoard
import SourceSupport
import Support

import Location

final class AdapterFixture {
    let sink = RecordingSink()
    let board = Publisher<SourceReport>()
    private let adapter: LocationAdapter
    private let stop: StopSignal
    private var thread: OwnThread?

    init(
        port: UInt16,
        clock: any HostClock = SystemClock(),
        interval: Duration = .milliseconds(1)
    ) throws {
        let stop = try StopSignal()
        var settings = LocationSettings()
        settings.gpsd = HostPort(host: "127.0.0.1", port: port)
        settings.interval = interval
        let adapter = try LocationAdapter(
            settings: settings,
            sink: sink,
            board: board,
            clock: clock
        )
        self.stop = stop
        self.adapter = adapter
        thread = try OwnThread("location") { adapter.run(until: stop) }
    }

    func checkHealth() { adapter.checkHealth() }

    /// The call that its thread is in.
    var call: String { "\(stop.life.word.call)" }

    func finish() {
        stop.raise()
        if let thread = thread.take() { thread.join() }
    }

    /// Why it does not work; nil when it does.
    var reason: String? {
        if case .error(let failure, _) = board.state { failure.message } else { nil }
    }

    var isLoaded: Bool {
        if case .loaded = board.state { true } else { false }
    }

    var detail: String { board.state.value?.detail ?? "" }
    var dropped: Int { board.state.value?.dropped ?? 0 }
}
