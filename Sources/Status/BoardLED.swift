// Controls the board's LED in /sys/class/leds, which the kernel makes blink.
import CLinux
import Glibc
package import Host
import StatusBoard

/// An LED of the board that can show a pattern.
package struct BoardLED {
    private static let folder = "/sys/class/leds"
    /// Names of a Raspberry Pi's activity LED in its kernels; other boards need `led.name`.
    private static let usual = ["ACT", "led0"]

    private let files: SystemFiles
    private let name: String
    private var path: String { "\(Self.folder)/\(name)" }

    /// Finds an LED by its folder name or `auto`; nil if there is none.
    ///
    /// `root`: a folder in place of `/`.
    package init?(_ name: String, root: String = "") {
        files = SystemFiles(root: root)
        let here = files.names(in: Self.folder)
        let found = name == "auto" ? Self.usual.first(where: here.contains) : name
        // Only a listed name, so that the path cannot leave the folder.
        guard let found, here.contains(found) else { return nil }
        self.name = found
    }

    /// Shows a pattern; throws a Failure that names the file and the reason.
    package func show(_ pattern: LEDPattern) throws(Failure) {
        let delays = pattern.delays
        try write("timer", to: "trigger")
        // The delay files appear with the trigger.
        try write("\(delays.on)", to: "delay_on")
        try write("\(delays.off)", to: "delay_off")
    }

    /// Resets all other LEDs that show a pattern: after a change of `led.name` the old one would
    /// otherwise blink on, even for a dead gateway.
    static func leaveAll(but led: BoardLED?, root: String) throws(Failure) {
        for other in SystemFiles(root: root).names(in: folder) where other != led?.name {
            guard let led = BoardLED(other, root: root), led.isOurs else { continue }
            try led.leave()
        }
    }

    /// True if the LED shows one of the patterns.
    private var isOurs: Bool {
        let delays = ["on", "off"].map { files.text("\(path)/delay_\($0)").flatMap { Int($0) } }
        return LEDPattern.allCases.contains { [$0.delays.on, $0.delays.off] == delays }
    }

    /// Resets the LED: an activity LED to the card's activity if the kernel can, any other to off.
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
