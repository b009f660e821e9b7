// What the board's LED shows: four patterns that a person tells apart from some metres away, without counting.
package import Host
import StatusBoard

/// How a gateway is, for somebody without a terminal.
package enum LEDPattern: String, Sendable, CaseIterable {
    /// A short flash every three seconds.
    case healthy
    /// Even and slow, a second each.
    case degraded
    /// Fast.
    case critical
    /// Lit, with a short gap every three seconds.
    case notEnrolled = "not-enrolled"

    /// Lit and dark, in milliseconds, as the kernel's trigger `timer` takes them.
    var delays: (on: Int, off: Int) {
        switch self {
        case .healthy: (60, 2940)
        case .degraded: (1000, 1000)
        case .critical: (100, 100)
        case .notEnrolled: (2900, 100)
        }
    }

    /// What fails for good comes first, then what keeps all else from beginning.
    init(_ state: StatusReport.Health, isEnrolled: Bool) {
        switch state {
        case .critical: self = .critical
        case _ where !isEnrolled: self = .notEnrolled
        case .degraded: self = .degraded
        case .healthy: self = .healthy
        }
    }
}

/// The file in the runtime directory that says what to show: `PATTERN NAME`, the name of the LED as configured.
///
/// The service may not write to /sys; waypost-led.path watches this file and has a unit of its own do it.
package struct LEDFile: Sendable {
    package static let off = "off"

    private let path: String

    package init(runtimeDirectory: String) { path = "\(runtimeDirectory)/led" }

    /// Replaces it where it says something else; says nothing of a failure, which the health files tell of.
    func write(_ pattern: LEDPattern, _ name: String) {
        let text = "\(pattern.rawValue) \(name)\n"
        guard SmallText.read(path) != text else { return }
        try? SmallFile.replace(path, Array(text.utf8), mode: 0o644, isSynced: false)
    }

    /// The gateway has ended, however it did: a program that is dead shows no health.
    package func stopped() { write(.critical, read()?.name ?? "auto") }

    /// Shows it on the LED, and again where it says something else by then: a change that comes while the unit runs for the one
    /// before starts no other (systemd#5770), and would be shown by the next change alone.
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

    /// nil for anything that `write` has not written.
    package func read() -> (pattern: LEDPattern, name: String)? {
        let words =
            SmallText.read(path, followsLink: false)?.split(whereSeparator: \.isWhitespace) ?? []
        guard words.count == 2, let pattern = LEDPattern(rawValue: String(words[0])),
            BoardLED.isName(String(words[1]))
        else { return nil }
        return (pattern, String(words[1]))
    }
}
