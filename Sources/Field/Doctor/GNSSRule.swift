// Writes a udev rule that gives the device in a USB port to gpsd.
import Glibc
package import Host

/// The rules of `waypost devices --write-rule PORT`.
package enum GNSSRule {
    /// The number sorts this rule after gpsd's own (60) and before ours (70), which starts the
    /// gateway for gpsd's devices.
    package static let path = "/etc/udev/rules.d/65-waypost-gnss.rules"

    /// Returns the interface of a port; without one in the name it is the first.
    static func interface(of port: String) -> String {
        port.contains(":") ? port : "\(port):1.0"
    }

    static func text(_ port: String) -> String {
        let device = port.prefix { $0 != ":" }
        return """
            # Written by `waypost devices --write-rule \(port)`: what is plugged in there is a GNSS receiver.
            SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", KERNEL=="\(device)", ENV{ID_MM_DEVICE_IGNORE}="1"
            SUBSYSTEM=="tty", KERNELS=="\(interface(of: port))", SYMLINK+="gps%n", TAG+="systemd", ENV{SYSTEMD_WANTS}+="gpsdctl@%k.service"

            """
    }

    /// Adds a port's rule; returns a line per step done, and the serial device that is there now.
    ///
    /// Throws a Failure with a remedy.
    package static func write(
        _ port: String,
        root: String = ""
    ) throws(Failure) -> (lines: [String], device: String?) {
        guard isPort(port) else {
            throw Failure(
                "\"\(printable(port))\" is not a USB port such as 1-1.3; `waypost devices` lists those in use"
            )
        }
        let files = SystemFiles(root: root)
        let old = files.text(path).map { "\($0)\n" } ?? ""
        let rule = text(port)
        let here = SerialAdapters(files).unclaimed(knownToGPSD: []).first { $0.port == port }
        guard !old.contains(text: "KERNELS==\"\(interface(of: port))\"") else {
            return (["\(path): has the rule for \(port) already"], nil)
        }
        do throws(SystemError) {
            try SmallFile.replace(root + path, Array((old + rule).utf8), mode: 0o644)
        } catch {
            let advice =
                switch error.code {
                case EACCES, EPERM: "`sudo waypost devices --write-rule \(port)`"
                case EROFS: "the system is read-only: make it writable for this, then restart"
                case ENOENT: "is udev installed here?"
                default: "check the disk"
                }
            throw Failure("\(path): \(error.reason); \(advice)")
        }
        let now = here.map { "\($0.chip) at \($0.path)" } ?? "no known adapter now"
        let lines = [
            "\(path): what is plugged into \(port) goes to gpsd (\(now))",
            "to undo it: delete the lines of \(port) there, then `sudo udevadm control --reload`",
        ]
        return (lines, here?.path)
    }

    /// Returns whether a text is like `1-1.3` or `1-1.3:1.1`: bus, ports of hubs, interface.
    private static func isPort(_ text: String) -> Bool {
        let halves = text.split(separator: ":", omittingEmptySubsequences: false)
        guard halves.count <= 2, text.utf8.count <= 40 else { return false }
        let bus = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        let isNumbers = { (text: Substring) in
            text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy {
                !$0.isEmpty && $0.utf8.allSatisfy(\.isDigit)
            }
        }
        return bus.count == 2 && isNumbers(bus[0]) && isNumbers(bus[1])
            && (halves.count == 1 || isNumbers(halves[1]))
    }
}
