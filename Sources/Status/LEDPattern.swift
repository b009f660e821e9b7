// The four patterns of the board's LED, and the file that passes them to the LED's unit.
package import Host
import Setup
import StatusBoard

/// A blink pattern for the gateway's state, distinguishable at a distance without counting.
package enum LEDPattern: String, Sendable, CaseIterable {
    /// A brief flash every three seconds.
    case healthy
    /// On and off for one second each.
    case degraded
    /// Fast blinking.
    case critical
    /// On, with a brief gap every three seconds.
    case notEnrolled = "not-enrolled"

    /// On and off times in milliseconds, for the kernel's trigger `timer`.
    package var delays: (on: Int, off: Int) {
        switch self {
        case .healthy: (60, 2940)
        case .degraded: (1000, 1000)
        case .critical: (100, 100)
        case .notEnrolled: (2900, 100)
        }
    }

    /// Chooses a pattern: critical first, then not enrolled, which blocks everything else.
    package init(_ state: StatusReport.Health, isEnrolled: Bool) {
        switch state {
        case .critical, .unknown: self = .critical
        case _ where !isEnrolled: self = .notEnrolled
        case .degraded: self = .degraded
        case .healthy: self = .healthy
        }
    }
}

/// The file in the runtime directory with the pattern to show: `PATTERN NAME`.
///
/// NAME is the LED as configured. The service may not write to /sys; waypost-led.path watches this
/// file and starts a separate unit that sets the LED.
package struct LEDFile: Sendable {
    package static let off = "off"

    private let path: String

    package init(runtimeDirectory: String) { path = "\(runtimeDirectory)/led" }

    /// Replaces the file if its content changes; ignores errors, which the health files report.
    package func write(_ pattern: LEDPattern, _ name: String) {
        let text = "\(pattern.rawValue) \(name)\n"
        guard SmallText.read(path) != text else { return }
        try? SmallFile.replace(path, Array(text.utf8), mode: 0o644, isSynced: false)
    }

    /// Shows critical after the gateway has ended for any reason.
    package func stopped() { write(.critical, read()?.name ?? "auto") }

    /// Shows the pattern on the LED, and repeats until the file no longer changes.
    ///
    /// A change while the unit runs does not start it again (systemd#5770), and would otherwise be
    /// shown only with the next change.
    ///
    /// `root`: a folder in place of `/`.
    package func show(root: String = "") throws(Failure) {
        var shown: (pattern: LEDPattern, name: String)?
        while let said = read() {
            if let shown, shown == said { return }
            if said.name == Self.off { try BoardLED("auto", root: root)?.leave() }
            let led = said.name == Self.off ? nil : BoardLED(said.name, root: root)
            try led?.show(said.pattern)
            try BoardLED.leaveAll(but: led, root: root)
            shown = said
        }
    }

    /// Reads the file; nil for anything that `write` has not written.
    package func read() -> (pattern: LEDPattern, name: String)? {
        let words =
            SmallText.read(path, followsLink: false)?.split(whereSeparator: \.isWhitespace) ?? []
        guard words.count == 2, let pattern = LEDPattern(rawValue: String(words[0])),
            LEDName.isName(String(words[1]))
        else { return nil }
        return (pattern, String(words[1]))
    }
}
