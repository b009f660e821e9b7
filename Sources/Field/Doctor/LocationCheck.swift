// Checks gpsd, its GNSS receiver and the fix.
import Host
import Location
import Setup

struct LocationCheck {
    /// Seconds to wait for a fix: a receiver reports each second, one just opened takes longer.
    private static let patience = 5

    let input: DoctorInput

    var findings: [Finding] {
        guard input.configuration.location.isEnabled else {
            return [.ok("gpsd", "off (location.enabled = false)")]
        }
        let address = input.configuration.location.gpsd
        let look: GPSDProbe
        do {
            look = try GPSDProbe(address, limit: .seconds(Self.patience))
        } catch {
            let next = "`sudo systemctl enable --now gpsd.socket`"
            return [.fail("gpsd", "gpsd at \(error)", next: next)]
        }
        guard let release = look.release else {
            let what = "the server at \(address) is not gpsd"
            return [.fail("gpsd", what, next: "check location.gpsd")]
        }
        return [.ok("gpsd", "gpsd \(release) at \(address)"), receiver(look)]
    }

    private var noReceiver: Finding {
        let adapters = SerialAdapters(input.files).unclaimed(knownToGPSD: [])
        guard let adapter = adapters.first else {
            return .fail(
                "receiver",
                "gpsd has none",
                next: "plug one in; one on a serial port goes into DEVICES in /etc/default/gpsd"
            )
        }
        return .fail(
            "receiver",
            "gpsd has none, and does not use the \(adapter.chip) at \(adapter.path)",
            next: "if that is the receiver: `sudo waypost devices --write-rule \(adapter.port)`"
        )
    }

    private func receiver(_ look: GPSDProbe) -> Finding {
        let names = look.receivers.compactMap { receiver in
            receiver.path.map { path in receiver.driver.map { "\(path) (\($0))" } ?? path }
        }
        guard !names.isEmpty else { return noReceiver }
        let all = names.joined(separator: ", ")
        guard let mode = look.mode else {
            return .fail(
                "receiver",
                "\(all) sends nothing",
                next: "check its cable and speed: `gpsmon`; then `sudo systemctl restart gpsd`"
            )
        }
        guard mode >= 2 else {
            return .warn(
                "receiver",
                "\(all) has no fix in \(Self.patience) s",
                next: "put the antenna where it sees the sky; the first fix takes some minutes"
            )
        }
        return .ok("receiver", "\(all) has a \(mode)D fix")
    }
}
