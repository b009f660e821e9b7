// The figures of a measurement, as a page of text and as JSON.
import Host
import JSON
import Status

/// A member of the JSON and a line of the text; without a value, `why` says why it is unknown.
private struct Figure {
    let name: String
    let label: String
    let value: JSONValue?
    let unit: String
    let why: String

    init(
        _ name: String,
        _ label: String,
        _ value: JSONValue?,
        _ unit: String = "",
        or why: String = "the kernel does not report it"
    ) {
        (self.name, self.label, self.value, self.unit, self.why) = (name, label, value, unit, why)
    }

    /// Its lines, at most 80 columns wide.
    var lines: [String] {
        let text = value.map(text) ?? "unknown: \(why)"
        return text.wrapped(to: 62, breakingWords: true).enumerated()
            .map { ($0.offset == 0 ? label : "").column(18) + $0.element }
    }

    private func text(_ value: JSONValue) -> String {
        switch value {
        case .flag(let flag): flag ? "yes" : "no"
        case .text(let text): text
        case .number(let digits):
            Int64(digits).flatMap { unit == "B" ? roughSize($0) : nil }
                ?? (unit == "" ? digits : "\(digits) \(unit)")
        case .object(let members):
            members.isEmpty
                ? "none"
                : members.sorted { $0.key < $1.key }.map { "\($0.key) \(text($0.value))" }
                    .joined(separator: ", ")
        case .null, .array: "unknown"
        }
    }
}

extension BoardMeasurement {
    /// One JSON object on one line; an unknown figure is null, and `unknown` says why.
    package var json: [UInt8] {
        var members: [String: JSONValue] = [:]
        var unknown: [String: JSONValue] = [:]
        for figure in figures {
            members[figure.name] = figure.value ?? .null
            if figure.value == nil { unknown[figure.name] = .text(figure.why) }
        }
        members["unknown"] = .object(unknown)
        var json = JSONWriter()
        JSONValue.object(members).write(to: &json)
        return json.bytes
    }

    /// A page of text, 80 columns wide.
    package var text: String { figures.flatMap(\.lines).joined(separator: "\n") + "\n" }

    private var figures: [Figure] { board + process + hardware + counters + clocks }

    private var board: [Figure] {
        let isPackage = files.exists("/usr/share/doc/waypost/copyright")
        let isImage = files.exists("/etc/chrony/conf.d/waypost.conf")
        let kind = isImage ? "card image" : isPackage ? "package" : "built from source"
        let kernel = files.text("/proc/sys/kernel/osrelease")
        let nameless = "neither device tree nor DMI names it"
        return [
            Figure("model", "board", files.model?.json, or: nameless),
            Figure("kernel", "kernel", kernel?.json),
            Figure("architecture", "processor", files.processor?.json),
            Figure("program", "program for", files.program?.json, or: "neither arm64 nor amd64"),
            Figure("version", "waypost", last.status.version.json),
            Figure("installed_as", "installed as", kind.json),
            Figure("began_at", "began", began.rfc3339.json),
            Figure("seconds", "measured for", seconds.json, "s"),
            Figure("samples", "samples", samples.count.json),
        ]
    }

    private var process: [Figure] {
        let threads = wakeups
        let total = threads.isEmpty ? nil : Double(threads.values.reduce(0, +)) / seconds
        let rates = threads.mapValues { (Double($0) / seconds).json }
        let cpu = (last.gateway.cpuS - first.gateway.cpuS) / seconds * 100
        return [
            Figure("pss_bytes", "PSS", sizes(\.pssBytes), "B"),
            Figure("private_bytes", "private", sizes(\.privateBytes), "B"),
            Figure("resident_bytes", "resident", sizes(\.residentBytes), "B"),
            Figure("cpu_percent", "CPU", cpu.json, "% of a core"),
            Figure("board_busy_percent", "all programs", busy?.json, "% of all cores"),
            Figure("wakeups_per_s", "wake-ups", total?.json, "per second"),
            Figure("threads", "by thread", total.map { _ in .object(rates) }),
        ]
    }

    private var hardware: [Figure] {
        let degrees = samples.compactMap { $0.millidegrees.map { Double($0) / 1000 } }.max()
        let alarms = samples.compactMap(\.undervoltage)
        let alarm = alarms.isEmpty ? nil : alarms.contains(true)
        let (disk, written) = (last.status.disk?.name, growth(\.status.disk?.writtenBytes))
        let own = growth(\.gateway.writtenBytes)
        let (none, unwatched) = ("the queue is not on a disk", "this board does not report it")
        return [
            Figure("temperature_c", "temperature", degrees?.json, "°C at most", or: "no sensor"),
            Figure("undervoltage", "undervoltage", alarm.map { .flag($0) }, or: unwatched),
            Figure("disk", "disk", disk?.json, or: none),
            Figure("disk_written_bytes", "written there", written?.json, "B", or: none),
            Figure("own_written_bytes", "by the gateway", own?.json, "B"),
        ]
    }

    private var counters: [Figure] {
        let off = "no source is on"
        let hasAudio = isOn("audio")
        let overruns = hasAudio ? growth { Int64($0.gateway.audioOverruns) } : nil
        let before = first.gateway.bodyBytes
        let bodies = last.gateway.bodyBytes.map { ($0, ($1 - (before[$0] ?? 0)).json) }
        return [
            Figure("records", "records", counts(\.records), or: off),
            Figure("dropped", "dropped", counts(\.dropped), or: off),
            Figure("lost", "lost", .object(lost)),
            Figure("audio_overruns", "audio overruns", overruns?.json, or: "audio is off"),
            Figure("interface_bytes", "interfaces", interfaces, "B", or: "only loopback"),
            Figure("upload_bytes", "upload bodies", .object(Dictionary(bodies) { $1 }), "B"),
        ]
    }

    private var clocks: [Figure] {
        let (unset, few) = ("no NTP client sets the clock", "fewer than 20 GNSS times")
        let (unit, gateway) = ("ppm, + is fast", last.gateway)
        // A gateway that started later was started by a person and not by the boot.
        let isLate = gateway.startedS >= 300
        let late = "the gateway started \(span(Int(gateway.startedS))) after the boot"
        func boot(_ name: String, _ label: String, _ time: Double?) -> Figure {
            let why = isLate ? late : "none yet"
            return Figure("boot_to_\(name)_s", label, isLate ? nil : time?.json, "s", or: why)
        }
        return [
            Figure("ntp_drift_ppm", "drift by NTP", last.ntpDrift?.json, unit, or: unset),
            Figure("gnss_drift_ppm", "drift by GNSS", gnssDrift?.json, unit, or: few),
            boot("start", "boot to start", gateway.startedS),
            boot("first_record", "to first record", gateway.firstRecordS),
            boot("first_upload", "to first upload", gateway.firstUploadS),
        ]
    }

    // MARK: Values

    /// The median, 95th percentile and maximum of a size in bytes.
    private func sizes(_ size: (GatewayFigures) -> Int64?) -> JSONValue? {
        let sizes = samples.compactMap { size($0.gateway) }.sorted()
        guard let most = sizes.last else { return nil }
        let p95 = sizes[sizes.count * 95 / 100]
        return .object(["median": median(sizes).json, "p95": p95.json, "max": most.json])
    }

    /// The bytes through each interface, of all programs; null for one that was not there all the
    /// time, or counts from 0 again.
    private var interfaces: JSONValue? {
        let names = Set(samples.flatMap(\.network.keys))
        let all = names.reduce(into: [String: JSONValue]()) { all, name in
            all[name] = .null
            guard let sent = growth({ $0.network[name]?.sent }),
                let received = growth({ $0.network[name]?.received })
            else { return }
            all[name] = .object(["sent": sent.json, "received": received.json])
        }
        return all.isEmpty ? nil : .object(all)
    }

    private func isOn(_ source: String) -> Bool {
        last.status.sources[source].map { $0.state != .disabled } ?? false
    }

    /// How much a counter of each source that is on grew.
    private func counts(_ count: (StatusReport.Source) -> Int) -> JSONValue? {
        let names = last.status.sources.keys.filter(isOn)
        let counts = names.map { name in
            (name, growth { $0.status.sources[name].map { Int64(count($0)) } }?.json ?? .null)
        }
        return counts.isEmpty ? nil : .object(Dictionary(counts) { $1 })
    }

    /// The records that were lost during the measurement, by stream and kind, as `status` counts them.
    private var lost: [String: JSONValue] {
        last.status.losses.reduce(into: [String: [String: JSONValue]]()) { all, loss in
            let old = first.status.losses.first { ($0.stream, $0.kind) == (loss.stream, loss.kind) }
            let new = loss.records - (old?.records ?? 0)
            if new > 0 { all[loss.stream, default: [:]][loss.kind] = new.json }
        }
        .mapValues { .object($0) }
    }

    /// How much of the time all cores were busy, in per cent.
    private var busy: Double? {
        guard let idle = growth(\.ticks?.idle), let all = growth(\.ticks?.all), all > 0 else {
            return nil
        }
        return Double(all - idle) / Double(all) * 100
    }
}

extension String { fileprivate var json: JSONValue { .text(self) } }

extension BinaryInteger { fileprivate var json: JSONValue { .number("\(self)") } }

extension Double {
    /// Two decimals.
    fileprivate var json: JSONValue {
        // Adding 0 takes the sign off -0.
        isFinite ? .number("\(Host.rounded(self, 100) + 0)") : .null
    }
}
