// `waypost devices`: lists the adapters, capture devices and GNSS receivers present now.
import ArgumentParser
import Daemon
import Field

struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the Bluetooth adapters, capture devices and GNSS receivers present now."
    )

    @Flag(help: "One JSON object.") var json = false
    @Option(help: ArgumentHelp("Let gpsd use the device in a USB port.", valueName: "port"))
    var writeRule: String?
    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        if let writeRule { return try reporting("devices") { try write(writeRule) } }
        let devices = DeviceList(try options.values())
        if json {
            Output.write(devices.json + [10])
        } else {
            Output.write(devices.text)
        }
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
