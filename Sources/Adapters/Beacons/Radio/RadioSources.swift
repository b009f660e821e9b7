// The sources of controllers: a TCP server, or the kernel.
import Configuration
import Host

/// `h4:HOST:PORT`: a controller over TCP.
final class TCPRadioSource: RadioSource {
    let name: String
    let watch: AdapterMonitor? = nil
    let adapter: Int? = nil
    private let address: HostPort
    private let scan: ScanSettings

    init(_ address: HostPort, scan: ScanSettings) {
        name = "h4:\(address)"
        self.address = address
        self.scan = scan
    }

    /// Connects, which resets the controller whatever the step.
    func open(
        _ step: SilenceRecovery.Step,
        until stop: StopSignal,
        _ pass: EventSink
    ) throws -> any Radio {
        do {
            let link = try H4Link(host: address.host, port: address.port, until: stop)
            return CommandedRadio(link, scan)
        } catch let error as ConnectError {
            throw Failure("h4:\(error); is the controller running?")
        }
    }
}

/// `hciN`: an adapter of this machine.
final class KernelRadioSource: RadioSource {
    let name: String
    var adapter: Int? { number }
    /// nil on a kernel without Bluetooth.
    private(set) var watch: AdapterMonitor?
    private let number: Int
    private let settings: BeaconSettings
    private let warn: @Sendable (String) -> Void
    private let rfkill: RFKill
    private var reported: Set<String> = []

    init(
        adapter: Int,
        settings: BeaconSettings,
        rfkill: RFKill = RFKill(),
        warn: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.warn = warn
        name = "hci\(adapter)"
        number = adapter
        self.settings = settings
        self.rfkill = rfkill
    }

    func open(
        _ step: SilenceRecovery.Step,
        until stop: StopSignal,
        _ pass: EventSink
    ) throws -> any Radio {
        // Monitor first, so that an adapter that appears now is not missed.
        if watch == nil { watch = try? AdapterMonitor() }
        // List others before our own sockets are among them.
        let others = HCIUser.others()
        if step == .reopen { _ = try rfkill.unblock(for: name, until: stop) }
        let link = try connect(until: stop)
        if step != .restart { try link.powerCycle() }
        let powerCycle = { try link.powerCycle() }
        let raw = CommandedRadio(
            link,
            settings.scan,
            hasCompany: !others.isEmpty,
            powerCycle: powerCycle
        )
        guard others.contains(where: \.isBluetoothDaemon) else { return raw }
        let shared = SharedRadio(
            link,
            try ManagementSocket(adapter: number),
            settings.scan,
            keepsUnknown: settings.keepsUnknown,
            powerCycle: powerCycle
        )
        do {
            // Kernel support can only be tried; starting the scan replaces this monitor.
            try shared.start(until: stop, pass)
            reportOnce(shared.departures.map(\.text))
            return shared
        } catch is SharedRadio.NotSupportedError {
            return raw
        }
    }

    /// Reports each message once, however often the adapter is opened.
    private func reportOnce(_ texts: [String]) {
        for text in texts where reported.insert(text).inserted { warn("\(name): \(text)") }
    }

    private func connect(until stop: StopSignal) throws -> KernelLink {
        do {
            return try KernelLink(adapter: number, life: stop.life)
        } catch is NoAdapterError {
            throw NoAdapterError(name: name, others: KernelSocket.adapters())
        } catch is RadioBlockedError {
            _ = try rfkill.unblock(for: name, until: stop)
            return try KernelLink(adapter: number, life: stop.life)
        }
    }
}
