// A controller with a scan on it, whatever it is reached by.
import Host

/// A connected controller.
protocol Radio: AnyObject {
    /// Where its events come from.
    var link: any HCILink { get }
    /// One phrase on how it scans: `passive scan, extended`.
    var detail: String { get }
    /// Ending the scan ends it for others, too.
    var endsForAll: Bool { get }
    /// Starts the scan, or starts it again.
    func start(until stop: StopSignal, _ pass: EventSink) throws
    /// Resets the controller and starts the scan.
    func reset(until stop: StopSignal, _ pass: EventSink) throws
    /// Ends the scan if we began it.
    func end(_ pass: EventSink)
}

/// How a controller is reached.
protocol RadioSource: AnyObject {
    /// As in the configuration: `hci0`.
    var name: String { get }
    /// Adapters coming and going; nil where nothing tells of that.
    var watch: AdapterMonitor? { get }
    /// The adapter that `watch` is asked about.
    var adapter: Int? { get }
    /// A controller that is not scanning yet; `step` says how much is to be done before.
    ///
    /// `pass` gets what is heard meanwhile: whoever shares the controller may have it scanning.
    func open(
        _ step: SilenceRecovery.Step,
        until stop: StopSignal,
        _ pass: EventSink
    ) throws -> any Radio
}

/// A controller that we tell to scan by HCI commands.
final class CommandedRadio: Radio {
    let link: any HCILink
    private let settings: ScanSettings
    /// Switches the controller off and on; nil where HCI_Reset does it.
    private let powerCycle: (() throws -> Void)?
    /// Other programs use the adapter, too.
    private let hasCompany: Bool
    private var scanner: Scanner?
    private var foundRunning = false

    init(
        _ link: any HCILink,
        _ settings: ScanSettings,
        hasCompany: Bool = false,
        powerCycle: (() throws -> Void)? = nil
    ) {
        self.link = link
        self.settings = settings
        self.hasCompany = hasCompany
        self.powerCycle = powerCycle
    }

    var detail: String {
        let mode = settings.isActive ? "active" : "passive"
        return "\(mode) scan, \(scanner?.isExtended == true ? "extended" : "legacy")"
    }

    var endsForAll: Bool { !link.isExclusive }

    func start(until stop: StopSignal, _ pass: EventSink) throws {
        let isFirst = scanner == nil
        let scanner = try Scanner(link, settings, resets: isFirst, until: stop, pass)
        if isFirst { foundRunning = scanner.foundRunning }
        self.scanner = scanner
    }

    func reset(until stop: StopSignal, _ pass: EventSink) throws {
        try powerCycle?()
        scanner = try Scanner(link, settings, until: stop, pass)
        foundRunning = false
    }

    /// A scan that was on before and that nobody else can have wanted is one that we left on by a crash.
    func end(_ pass: EventSink) {
        if foundRunning, hasCompany { return }
        scanner?.end(pass)
    }
}

/// An adapter that bluetoothd manages: the kernel keeps a passive scan on for us.
///
/// Raw scan commands would be undone by bluetoothd's own. So a monitor of the management interface asks for the
/// scan, which the kernel brings into line with whatever bluetoothd wants, and the reports are heard on the raw
/// socket, which has every event of the adapter in full.
final class SharedRadio: Radio {
    private static let scanStart = Duration.seconds(2)

    let link: any HCILink
    private let management: ManagementSocket
    private let scan: ScanSettings
    private let keepsUnknown: Bool
    private let powerCycle: () throws -> Void
    private var monitor: UInt16?
    private var hasOurPace = true

    init(
        _ link: any HCILink,
        _ management: ManagementSocket,
        _ scan: ScanSettings,
        keepsUnknown: Bool,
        powerCycle: @escaping () throws -> Void
    ) {
        self.link = link
        self.management = management
        self.scan = scan
        self.keepsUnknown = keepsUnknown
        self.powerCycle = powerCycle
    }

    var detail: String {
        (["passive scan, shared with bluetoothd"] + departures.map(\.brief)).joined(separator: ", ")
    }

    /// What of the settings is not done beside bluetoothd: for the detail, and in full.
    var departures: [(brief: String, text: String)] {
        var departures: [(brief: String, text: String)] = []
        if scan.isActive {
            departures.append(
                (
                    "not active",
                    "beacons.scan = \"active\" is not done: the scan shared with bluetoothd is passive; "
                        + "`systemctl disable --now bluetooth` gives the adapter to Waypost"
                )
            )
        }
        if !hasOurPace {
            departures.append(
                (
                    "at the kernel's pace",
                    "beacons.scan_interval and scan_window are not done: this kernel has a pace of its own "
                        + "for the scan shared with bluetoothd (Linux 5.9 and later can change it)"
                )
            )
        }
        return departures
    }

    /// The kernel goes on for whoever else wants it.
    let endsForAll = false

    /// The kernel cannot do this: it is older than Linux 5.10, or passes each beacon on only once.
    struct NotSupported: Error, CustomStringConvertible {
        let description =
            "the kernel keeps no scan that hears repeats; raw commands are used instead"
    }

    func start(until stop: StopSignal, _ pass: EventSink) throws {
        try remove(until: stop)
        let pace = try management.ask(Management.setMonitorScan(scan), until: stop)
        hasOurPace = pace.status == Management.success
        let command = Management.addMonitor(Management.patterns(unknown: keepsUnknown))
        let answer = try management.ask(command, until: stop)
        switch answer.status {
        case Management.success:
            var cursor = ByteCursor(answer.values[...])
            monitor = cursor.littleEndian(2).map { UInt16(truncatingIfNeeded: $0) }
            try checkDuplicates(until: stop, pass)
        case Management.noResources:
            // Monitors outlive the program that added them; there are some, so the kernel scans.
            monitor = nil
        case Management.unknownCommand, Management.notSupported:
            throw NotSupported()
        case Management.permissionDenied:
            throw Failure(
                "\(command.name): no permission; run it by its service, or give it CAP_NET_ADMIN",
                code: .permission
            )
        default:
            throw ScanRefusal(command: command.name, status: answer.status)
        }
    }

    /// Kernels since 5.17 without a fix of 2024 filter duplicates under a monitor: each repeat is a measurement.
    ///
    /// The kernel's command shows it; where none comes it scans already, for other monitors.
    private func checkDuplicates(until stop: StopSignal, _ pass: EventSink) throws {
        let end = SystemClock().now() + Self.scanStart
        while SystemClock().now() < end, !stop.isRaised {
            // A controller that never pauses must not keep us here.
            while SystemClock().now() < end, !stop.isRaised, let event = try link.receive() {
                pass(event)
            }
            switch link.takeForeignOrder() {
            case .on(filtersDuplicates: true):
                try remove(until: stop)
                throw NotSupported()
            case .on: return
            case .off, nil: break
            }
            var entries = [PollEntry(link.descriptor), PollEntry(stop.descriptor)]
            _ = stop.wait(for: &entries, timeout: end - SystemClock().now())
        }
    }

    func reset(until stop: StopSignal, _ pass: EventSink) throws {
        try powerCycle()
        try start(until: stop, pass)
    }

    func end(_ pass: EventSink) { try? remove(until: nil) }

    private func remove(until stop: StopSignal?) throws {
        guard let handle = monitor else { return }
        monitor = nil
        // Where the adapter is gone, its monitor is gone, too.
        _ = try management.ask(
            Management.removeMonitor(handle),
            until: stop,
            timeout: stop == nil ? .milliseconds(300) : .seconds(5)
        )
    }
}
