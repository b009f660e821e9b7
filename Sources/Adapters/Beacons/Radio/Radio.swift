// A Bluetooth controller that scans. `CommandedRadio` sends HCI commands itself; `SharedRadio` asks
// the kernel to scan, because bluetoothd owns the adapter.
import Host

/// An open controller: starts, resets and ends the scan.
///
/// Used by the source's thread only.
protocol Radio: AnyObject {
    /// The source of its events.
    var link: any HCILink { get }
    /// A short description of the scan: `passive scan, extended`.
    var detail: String { get }
    /// Whether ending our scan also ends other programs' scans.
    var endsForAll: Bool { get }
    /// Starts or restarts the scan.
    func start(until stop: StopSignal, _ pass: EventSink) throws
    /// Resets the controller and starts the scan.
    func reset(until stop: StopSignal, _ pass: EventSink) throws
    /// Ends the scan if we started it.
    func end(_ pass: EventSink)
}

/// Opens the configured controller.
protocol RadioSource: AnyObject {
    /// The name in the configuration, such as `hci0`.
    var name: String { get }
    /// Reports adapters that come and go; nil if that cannot be monitored.
    var watch: AdapterMonitor? { get }
    /// The adapter that this source uses, for events of `watch`.
    var adapter: Int? { get }
    /// Opens the controller without starting our scan; `step` is the recovery step to do first.
    ///
    /// `pass` receives the events of this time, from scans of other programs.
    func open(
        _ step: SilenceRecovery.Step,
        until stop: StopSignal,
        _ pass: EventSink
    ) throws -> any Radio
}

/// A controller whose scan we control by HCI commands.
final class CommandedRadio: Radio {
    let link: any HCILink
    private let settings: ScanSettings
    /// Switches the controller off and on; nil if HCI_Reset does that.
    private let powerCycle: (() throws -> Void)?
    /// Whether other programs may also use the adapter.
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

    /// Ends the scan.
    ///
    /// Leaves a scan that was already running only if another program may use it; otherwise it is
    /// left over from our own crash.
    func end(_ pass: EventSink) {
        if foundRunning, hasCompany { return }
        scanner?.end(pass)
    }
}

/// An adapter that bluetoothd manages: the kernel keeps a passive scan on for us.
///
/// bluetoothd would undo raw scan commands. So a monitor of the management interface requests the
/// scan, which the kernel combines with bluetoothd's, and the reports are read from the raw socket,
/// which has every event of the adapter in full.
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

    /// Settings that have no effect while bluetoothd shares the adapter, each with a short and a
    /// full message.
    var departures: [(brief: String, text: String)] {
        let all = [
            (
                scan.isActive, "not active",
                "beacons.scan = \"active\" has no effect: the scan shared with bluetoothd is passive; "
                    + "`systemctl disable --now bluetooth` gives the adapter to Waypost"
            ),
            (
                !hasOurPace, "at the kernel's pace",
                "beacons.scan_interval and scan_window have no effect: this kernel uses a fixed pace "
                    + "for the scan shared with bluetoothd (Linux 5.9 and later can change it)"
            ),
        ]
        return all.filter(\.0).map { ($0.1, $0.2) }
    }

    /// The kernel keeps scanning for other programs.
    let endsForAll = false

    /// The kernel is older than Linux 5.10, or reports each beacon only once.
    struct NotSupportedError: Error, CustomStringConvertible {
        let description =
            "the kernel has no passive scan that reports repeats; raw commands are used instead"
    }

    func start(until stop: StopSignal, _ pass: EventSink) throws {
        try remove(until: stop)
        let pace = try management.ask(BluetoothManagement.setMonitorScan(scan), until: stop)
        hasOurPace = pace.status == BluetoothManagement.success
        let command = BluetoothManagement.addMonitor(
            BluetoothManagement.patterns(unknown: keepsUnknown)
        )
        let answer = try management.ask(command, until: stop)
        switch answer.status {
        case BluetoothManagement.success:
            var cursor = ByteCursor(answer.values[...])
            monitor = cursor.littleEndian(2).map { UInt16(truncatingIfNeeded: $0) }
            try checkDuplicates(until: stop, pass)
        case BluetoothManagement.noResources:
            // The table is full of monitors left by earlier processes, so the kernel already scans.
            monitor = nil
        case BluetoothManagement.unknownCommand, BluetoothManagement.notSupported:
            throw NotSupportedError()
        case BluetoothManagement.permissionDenied:
            throw Failure(
                "\(command.name): no permission; run it by its service, or give it CAP_NET_ADMIN",
                code: .permission
            )
        default:
            throw ScanError(command: command.name, status: answer.status)
        }
    }

    /// Rejects kernels that filter duplicates under a monitor (5.17 and later without a fix of
    /// 2024).
    ///
    /// We need every repeat. The kernel's scan command shows whether it filters; no command means
    /// that a scan is already running.
    private func checkDuplicates(until stop: StopSignal, _ pass: EventSink) throws {
        let end = SystemClock().now() + Self.scanStart
        while SystemClock().now() < end, !stop.isRaised {
            // Check the deadline here too, because a busy controller never runs out of events.
            while SystemClock().now() < end, !stop.isRaised, let event = try link.receive() {
                pass(event)
            }
            switch link.takeForeignOrder() {
            case .on(filtersDuplicates: true):
                try remove(until: stop)
                throw NotSupportedError()
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
        // Removing the adapter has removed its monitor, too.
        _ = try management.ask(
            BluetoothManagement.removeMonitor(handle),
            until: stop,
            timeout: stop == nil ? .milliseconds(300) : .seconds(5)
        )
    }
}
