// Reads what the kernel reports about the board: supply voltage, temperature, load, memory, Wi-Fi signal.
package import Host
package import Records

extension BoardReadings {
    /// Reads all values but the supply voltage.
    package init(_ files: SystemFiles) {
        self.init()
        cpuDecidegrees = files.millidegrees.map { ($0 + ($0 < 0 ? -50 : 50)) / 100 }
        loadHundredths = files.loadHundredths
        availableBytes = files.availableBytes
        wifiRSSI = files.wifiRSSI
    }
}

extension SystemFiles {
    // MARK: Supply

    /// Whether the supply voltage was too low in the last seconds; nil on other boards.
    ///
    /// Raspberry Pi's driver asks the firmware every 2 s, and reports undervoltage since then.
    package var undervoltage: Bool? {
        voltageAlarm ?? firmwareFlags.map { $0 & (1 | 1 << 16) != 0 }
    }

    /// The firmware's flags, which only Raspberry Pi's own kernels show.
    package var firmwareFlags: UInt32? {
        let folder = "/sys/devices/platform"
        for soc in names(in: folder) where soc.hasPrefix("soc") {
            for name in names(in: "\(folder)/\(soc)") where name.hasSuffix(":firmware") {
                let flags = text("\(folder)/\(soc)/\(name)/get_throttled")
                let digits = flags.map { $0.hasPrefix("0x") ? String($0.dropFirst(2)) : $0 }
                if let digits, let flags = UInt32(digits, radix: 16) { return flags }
            }
        }
        return nil
    }

    /// The undervoltage alarm of the driver raspberrypi-hwmon, which any kernel may have.
    package var voltageAlarm: Bool? {
        for name in names(in: "/sys/class/hwmon") {
            let folder = "/sys/class/hwmon/\(name)"
            guard text("\(folder)/name") == "rpi_volt" else { continue }
            return text("\(folder)/in0_lcrit_alarm").map { $0 == "1" }
        }
        return nil
    }

    // MARK: Temperature

    /// The temperature of the processor in thousandths of a degree Celsius.
    ///
    /// The highest of the processor's zones, or of all where none says what it is.
    package var millidegrees: Int64? {
        let zones = names(in: "/sys/class/thermal").filter { $0.hasPrefix("thermal_zone") }
            .map { "/sys/class/thermal/\($0)" }
        let ofProcessor = zones.filter { zone in
            let type = text("\(zone)/type") ?? ""
            return ["cpu", "soc", "x86_pkg"].contains { type.hasPrefix($0) }
        }
        return highest(ofProcessor) ?? highest(zones)
    }

    private func highest(_ zones: [String]) -> Int64? {
        zones.compactMap { text("\($0)/temp").flatMap { Int64($0) } }
            .filter { (-60_000...200_000).contains($0) }.max()
    }

    // MARK: Load and memory

    /// The load average of the last minute, in hundredths (proc_loadavg(5)).
    fileprivate var loadHundredths: Int64? {
        let first = text("/proc/loadavg")?.split(separator: " ").first
        guard let load = first.flatMap({ Double($0) }), (0..<1_000_000).contains(load) else {
            return nil
        }
        return Int64((load * 100).rounded())
    }

    /// Memory that programs can still get (proc_meminfo(5), `MemAvailable`).
    fileprivate var availableBytes: Int64? {
        let count = number(after: "MemAvailable:", in: "/proc/meminfo")
        return count.flatMap { (0..<1 << 40).contains($0) ? $0 * 1024 : nil }
    }

    /// Returns the number after a name that begins a line, as in many files of /proc.
    func number(after name: String, in path: String) -> Int64? {
        let line = text(path)?.split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int64($0) }
    }

    // MARK: Wi-Fi

    /// The signal level of the first Wi-Fi interface that has one, in dBm.
    ///
    /// A line of /proc/net/wireless begins `wlan0: 0000   54.  -56.  -256`: status, link quality,
    /// level, noise; the point means that the value is new.
    fileprivate var wifiRSSI: Int64? {
        let lines = text("/proc/net/wireless")?.split(separator: "\n") ?? []
        return lines.firstResult { line -> Int64? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let fields = line[line.index(after: colon)...].split(separator: " ")
            guard fields.count > 2 else { return nil }
            let level = fields[2].last == "." ? fields[2].dropLast() : fields[2]
            return Int64(level).flatMap { (-120..<0).contains($0) ? $0 : nil }
        }
    }
}
