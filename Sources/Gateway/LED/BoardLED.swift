// The board's LED in /sys/class/leds; the kernel makes it blink by itself.
import CLinux
import Glibc
package import Host
import StatusBoard

/// An LED that a board has for whatever it wants to tell.
package struct BoardLED {
    private static let folder = "/sys/class/leds"
    /// The activity LED of a Raspberry Pi, as its kernels have named it; other boards' come by `led.name`.
    private static let usual = ["ACT", "led0"]

    private let files: SystemFiles
    private let name: String
    private var path: String { "\(Self.folder)/\(name)" }

    /// Looks it up by the name of a folder there, or `auto`; nil where there is none.
    ///
    /// `root`: a folder in place of `/`.
    package init?(_ name: String, root: String = "") {
        files = SystemFiles(root: root)
        let here = files.names(in: Self.folder)
        let found = name == "auto" ? Self.usual.first(where: here.contains) : name
        // By a name that is listed, and so nowhere else.
        guard let found, here.contains(found) else { return nil }
        self.name = found
    }

    /// Whether a text may name one: no path, nothing that needs quoting.
    static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && !text.hasPrefix(".")
            && text.utf8.allSatisfy { byte in
                byte.isLetter || byte.isDigit || ":_.-".utf8.contains(byte)
            }
    }

    /// Throws a Failure that names the file and why it could not be written.
    package func show(_ pattern: LEDPattern) throws(Failure) {
        let delays = pattern.delays
        try write("timer", to: "trigger")
        // They are there once the trigger is.
        try write("\(delays.on)", to: "delay_on")
        try write("\(delays.off)", to: "delay_off")
    }

    /// Leaves each other LED that blinks as a gateway's does: `led.name` was another, and that one would go on for a gateway that
    /// may be dead by then.
    static func leaveAll(but led: BoardLED?, root: String) throws(Failure) {
        for other in SystemFiles(root: root).names(in: folder) where other != led?.name {
            guard let led = BoardLED(other, root: root), led.isOurs else { continue }
            try led.leave()
        }
    }

    /// Whether it shows one of the patterns.
    private var isOurs: Bool {
        let delays = ["on", "off"].map { files.text("\(path)/delay_\($0)").flatMap { Int($0) } }
        return LEDPattern.allCases.contains { [$0.delays.on, $0.delays.off] == delays }
    }

    /// What it showed before the gateway: the card's activity, as far as this kernel can show it; an LED of another name nothing.
    package func leave() throws(Failure) {
        let triggers = files.text("\(path)/trigger")?.split(separator: " ") ?? []
        guard triggers.contains("[timer]") else { return }
        let isActivity = Self.usual.contains(name) && triggers.contains("mmc0")
        try write(isActivity ? "mmc0" : "none", to: "trigger")
    }

    private func write(_ text: String, to name: String) throws(Failure) {
        let file = "\(files.root)\(path)/\(name)"
        do throws(SystemError) {
            try Descriptor(opening: file, O_WRONLY | O_TRUNC).write(whole: Array(text.utf8), file)
        } catch {
            throw Failure("\(error)")
        }
    }
}
