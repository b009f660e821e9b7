// `waypost devices`: lists the adapters, capture devices and GNSS receivers present now.
import ArgumentParser
import Daemon
import Field
import Glibc
import Host

struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the Bluetooth adapters, capture devices and GNSS receivers present now.",
        discussion:
            "With --write-rule it writes a udev rule, after asking, and says how to undo it."
            + examples("waypost devices", "sudo waypost devices --write-rule 1-1.2")
    )

    @Flag(help: "One JSON object.") var json = false
    @Option(help: ArgumentHelp("Let gpsd use the device in a USB port.", valueName: "PORT"))
    var writeRule: String?
    @Flag(help: "With --write-rule: do not ask.") var yes = false
    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        if let writeRule {
            guard isAgreed(writeRule) else { throw ExitCode(1) }
            return try reporting("devices") { try write(writeRule) }
        }
        let devices = DeviceList(try options.valuesOrDefaults())
        if json {
            Output.write(devices.json + [10])
        } else {
            Output.write(devices.text)
        }
    }

    /// Asks on a terminal; scripts have nobody to ask.
    private func isAgreed(_ port: String) -> Bool {
        guard !yes, isatty(STDIN_FILENO) == 1 else { return true }
        Output.errorPart(
            """
            This writes \(GNSSRule.path): gpsd then opens whatever is plugged into \(port.blanked).
            Go on? [y/N]\u{20}
            """
        )
        return ["y", "yes"].contains(readLine()?.lowercased())
    }

    /// Writes the udev rule, and has udev and systemd apply it at once.
    private func write(_ port: String) throws {
        let (lines, device) = try GNSSRule.write(port)
        for line in lines { Output.write("\(line)\n") }
        ServiceCommand.run("/usr/bin/udevadm", ["control", "--reload"])
        guard let name = device?.split(separator: "/").last else { return }
        ServiceCommand.run("/usr/bin/udevadm", ["trigger", "--settle", "/sys/class/tty/\(name)"])
        // systemd does not start new units for a device that it already knows (systemd#33073).
        ServiceCommand.run(
            "/usr/bin/systemctl",
            ["--no-block", "start", "gpsdctl@\(name).service"]
        )
    }
}
