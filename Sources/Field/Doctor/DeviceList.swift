// The list of `waypost devices`: hardware that can be used now.
import Audio
import Host
import JSON
import Location
package import Setup
package import Status

/// Bluetooth adapters, capture devices, gpsd's GNSS receivers and other serial adapters.
package struct DeviceList: Codable, Sendable {
    package struct Adapter: Codable, Sendable {
        package var name: String
        /// `hard` or `soft` if rfkill blocks it.
        @OrNull package var blocked: String?
    }

    package struct Microphone: Codable, Sendable {
        /// The value for `audio.device`; stable over restarts and the order of plugging in.
        package var name: String
        package var title: String
        @OrNull package var port: String?
        package var rates: [Int]
        @OrNull package var heldBy: String?
    }

    package struct Receiver: Codable, Sendable {
        package var path: String
        @OrNull package var driver: String?
    }

    package var bluetooth: [Adapter]
    package var sound: [Microphone]
    package var gpsd: [Receiver]
    /// Why gpsd's receivers are not known.
    @OrNull package var gpsdError: String?
    /// Serial adapters that may be GNSS receivers and that gpsd does not use.
    package var serial: [SerialAdapter]

    /// Collects the list; blocks for a few seconds, mostly for gpsd.
    package init(_ configuration: Configuration, root: String = "") {
        let files = SystemFiles(root: root)
        bluetooth = Adapters.names(files).map {
            Adapter(name: $0, blocked: Adapters.block(of: $0, files))
        }
        sound = AudioCards(root: root).devices().map {
            Microphone(
                name: $0.name,
                title: $0.title,
                port: $0.port,
                rates: $0.rates,
                heldBy: $0.owner
            )
        }
        do {
            let address = configuration.location.gpsd
            let look = try GPSDProbe(address, limit: .seconds(3), wantsFix: false)
            gpsd = look.receivers.compactMap { receiver in
                receiver.path.map { Receiver(path: $0, driver: receiver.driver) }
            }
            gpsdError = look.release == nil ? "\(address) is not gpsd" : nil
        } catch {
            gpsd = []
            gpsdError = "\(error)"
        }
        serial = SerialAdapters(files).unclaimed(knownToGPSD: gpsd.map(\.path))
    }

    /// One JSON object on one line.
    package var json: [UInt8] { encodedJSON(self) }

    package var text: String {
        block(
            "BLUETOOTH",
            bluetooth.map { "\($0.name)" + ($0.blocked.map { "  blocked (rfkill, \($0))" } ?? "") }
        )
            + "\n"
            + block("SOUND", sound.map { line($0) })
            + "\n"
            + block(
                "GPSD",
                gpsdError.map { [$0] } ?? gpsd.map { $0.path + ($0.driver.map { "  \($0)" } ?? "") }
            ) + unclaimed
    }

    private var unclaimed: String {
        guard let first = serial.first else { return "" }
        let lines = serial.map { "\($0.path)  \($0.chip) \($0.product), port \($0.port)" }
        let advice = "is one a GNSS receiver? sudo waypost devices --write-rule \(first.port)"
        return "\n" + block("SERIAL ADAPTERS THAT GPSD DOES NOT USE", lines + [advice])
    }

    private func line(_ device: Microphone) -> String {
        let rates = device.rates.map { "\($0)" }.joined(separator: " ")
        let use = device.heldBy.map { "held by \($0)" } ?? (rates.isEmpty ? "" : "\(rates) Hz")
        return [device.name, device.title, use].filter { !$0.isEmpty }.joined(separator: "  ")
    }

    private func block(_ title: String, _ lines: [String]) -> String {
        let shown = lines.isEmpty ? ["none"] : lines
        return "\(title)\n" + shown.map { "  \($0)\n" }.joined()
    }
}
