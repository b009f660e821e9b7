// The board and the gateway at one point in time; a measurement takes a sample every ten seconds.
import CLinux
import Host
import Status

/// Counters of the kernel and of the gateway; those that cannot be read are absent.
struct BoardSample: Sendable {
    var at: BootInstant
    /// The time to add to `at` for a clock that no NTP client corrects.
    var slewed: Duration
    var status: StatusReport
    var gateway: GatewayFigures
    var millidegrees: Int64?
    var undervoltage: Bool?
    /// By how many ppm the clock would be fast without an NTP client; nil if none sets it.
    var ntpDrift: Double?
    /// Ticks of all cores (proc_stat(5)): spent idle, and all.
    var ticks: (idle: Int64, all: Int64)?
    /// Bytes sent and received by each interface.
    var network: [String: (sent: Int64, received: Int64)] = [:]

    init(_ reply: ControlReply, _ files: SystemFiles, _ clock: any HostClock) throws {
        guard let status = reply.status, let gateway = reply.figures else {
            throw Failure("the gateway gave no figures: `sudo systemctl restart waypost`")
        }
        (at, slewed, self.status, self.gateway) = (clock.now(), clock.slewed(), status, gateway)
        (millidegrees, undervoltage) = (files.millidegrees, files.undervoltage)
        var correction = 0
        if waypost_clock_correction(&correction) == 0 { ntpDrift = -Double(correction) / 65536 }
        let line = files.text("/proc/stat", limit: 4096)?.split(separator: "\n").first
        // user, nice, system, idle, iowait, irq, softirq, steal; the first two include guests.
        let counts =
            line?.split(separator: " ").dropFirst().prefix(8).compactMap { Int64($0) } ?? []
        if counts.count == 8 { ticks = (counts[3] + counts[4], counts.reduce(0, &+)) }
        for name in files.names(in: "/sys/class/net") where name != "lo" {
            let folder = "/sys/class/net/\(name)/statistics"
            let bytes = ["tx_bytes", "rx_bytes"]
                .compactMap { files.text("\(folder)/\($0)").flatMap { Int64($0) } }
            if bytes.count == 2 { network[name] = (bytes[0], bytes[1]) }
        }
    }

    /// GNSS time less the uncorrected clock, in nanoseconds; nil without a GNSS receiver.
    var gnssOffset: Double? {
        guard let time = gateway.gnssMs, let boot = gateway.gnssBootNs else { return nil }
        return Double(time) * 1e6 - Double(boot &+ slewed.nanoseconds)
    }
}
