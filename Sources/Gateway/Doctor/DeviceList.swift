// `devices`: what could be used here now.
import Audio
import Host
import JSON
import Location

/// Bluetooth adapters, capture devices and gpsd's receivers.
package struct DeviceList: Codable, Sendable {
    package struct Adapter: Codable, Sendable {
        package var name: String
        /// `hard` or `soft` where rfkill blocks it.
        @OrNull package var blocked: String?
    }

    package struct Microphone: Codable, Sendable {
        /// For `audio.device`; the same after a restart and in any order of plugging in.
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
    /// Why gpsd's are not known.
    @OrNull package var gpsdError: String?
    /// May be receivers; gpsd is told nothing of them.
    package var serial: [SerialAdapter]

    /// Looks for at most some seconds, most of them for gpsd.
    package init(_ configuration: Configuration, root: String = "") {
        let files = SystemFiles(root: root)
        bluetooth = Adapters.names(files).map {
            Adapter(name: $0, blocked: Adapters.block(of: $0, files))
        }
        sound = SoundCards(root: root).devices().map {
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
        let advice = "is one of them a receiver? sudo waypost devices --write-rule \(first.port)"
        return "\n" + block("SERIAL ADAPTERS THAT GPSD IS NOT TOLD OF", lines + [advice])
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
