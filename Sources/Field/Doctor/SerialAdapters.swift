// Finds USB serial adapters that may be GNSS receivers and that gpsd does not use.
import Glibc
import Host

/// A serial port of a USB adapter.
package struct SerialAdapter: Codable, Sendable, Equatable {
    /// `/dev/ttyUSB0`.
    package var path: String
    /// The USB port, and the interface of adapters with several: `1-1.3`, `1-1.4:1.1`.
    package var port: String
    /// The chip, as makers of GNSS receivers name it: `PL2303`.
    package var chip: String
    /// Manufacturer and product name from its USB descriptor.
    package var product: String
}

/// Finds serial adapters in /sys.
struct SerialAdapters {
    /// Chips in GNSS receivers and much else, which Debian's 60-gpsd.rules therefore omits.
    private static let chips: [(vendor: String, products: Set<String>, name: String)] = [
        ("067b", ["2303", "23a3", "23c3", "23d3"], "PL2303"),
        ("0403", ["6001", "6010", "6011", "6014", "6015"], "FTDI"),
        ("10c4", ["ea60", "ea70", "ea71"], "CP210x"),
        ("1a86", ["5523", "7522", "7523", "55d4"], "CH340"),
    ]

    private let files: SystemFiles

    init(_ files: SystemFiles) {
        self.files = files
    }

    /// Returns the adapters that no rule gives to gpsd and that it does not know otherwise.
    func unclaimed(knownToGPSD paths: [String]) -> [SerialAdapter] {
        let rules = self.rules
        let known = Set(paths.map { files.target($0) ?? $0 })
        return files.names(in: "/sys/class/tty").compactMap { tty in
            guard tty.hasPrefix("ttyUSB") || tty.hasPrefix("ttyACM"),
                !known.contains("/dev/\(tty)"), !known.contains(tty)
            else { return nil }
            return adapter(tty, rules)
        }
    }

    private func adapter(_ tty: String, _ rules: [Substring]) -> SerialAdapter? {
        let parts = files.target("/sys/class/tty/\(tty)")?.split(separator: "/") ?? []
        // …/1-1.3/1-1.3:1.0/ttyUSB0/tty/ttyUSB0
        guard let place = parts.lastIndex(where: { $0.contains(":") && $0.contains("-") }),
            let device = path(of: parts[..<place])
        else { return nil }
        let text = { (name: String) in files.text("\(device)/\(name)") ?? "" }
        let (vendor, product) = (text("idVendor"), text("idProduct"))
        let chip = Self.chips.first { $0.vendor == vendor && $0.products.contains(product) }
        guard let chip else { return nil }
        let interface = String(parts[place])
        let port = interface.hasSuffix(":1.0") ? String(interface.dropLast(4)) : interface
        let isClaimed = rules.contains { rule in
            rule.contains(text: "\"\(vendor)\"") && rule.contains(text: "\"\(product)\"")
                || rule.contains(text: "KERNELS==\"\(GNSSRule.interface(of: port))\"")
        }
        guard !isClaimed else { return nil }
        let words = [text("manufacturer"), text("product")].filter { !$0.isEmpty }
        return SerialAdapter(
            path: "/dev/\(tty)",
            port: port,
            chip: chip.name,
            product: words.joined(separator: " ").plainWords(atMost: 60)
        )
    }

    /// Returns the absolute path of the USB device's folder in /sys.
    private func path(of parts: ArraySlice<Substring>) -> String? {
        let below = parts.drop { $0 == ".." }
        let path = below.first == "devices" ? "/sys/" : "/"
        return below.isEmpty ? nil : path + below.joined(separator: "/")
    }

    /// Lines of udev rules that give a device to gpsd.
    private var rules: [Substring] {
        ["/usr/lib/udev/rules.d", "/lib/udev/rules.d", "/etc/udev/rules.d"].flatMap { folder in
            files.names(in: folder).filter { $0.hasSuffix(".rules") }.flatMap { name in
                (files.text("\(folder)/\(name)") ?? "").split(separator: "\n").filter {
                    !$0.hasPrefix("#") && $0.contains(text: "gpsdctl@")
                }
            }
        }
    }
}
