// `waypost devices`: adapters, capture devices and receivers that are here now.
import ArgumentParser
import Gateway

struct Devices: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List Bluetooth adapters, capture devices and gpsd's receivers that are here now."
    )

    @Flag(help: "One JSON object.") var json = false
    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        let devices = DeviceList(try options.values())
        if json {
            Output.write(devices.json + [10])
        } else {
            Output.write(devices.text)
        }
    }
}
