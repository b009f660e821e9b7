// The settings of the beacon source.
package import Configuration
package import Host
package import Records

/// The settings of the beacon source (`[beacons]`).
package struct BeaconSettings: Configurable {
    package var isEnabled = true
    package var source = BeaconOrigin.adapter(0)
    /// Pace of a replay: 1 is that of the capture, 0 as fast as possible.
    package var replaySpeed = 1.0
    package var scan = ScanSettings()
    package var allow: [String] = []
    package var deny: [String] = []
    /// Sightings stored per second and beacon.
    package var maxRate = 4.0
    /// Also stores advertisements that no decoder knows.
    package var keepsUnknown = false
    /// Keys of encrypted BTHome devices, 16 bytes each.
    package var bindkeys: [BluetoothAddress: [UInt8]] = [:]

    package init() {}

    package static var keys: [Key<Self>] {
        Key("enabled", \.isEnabled, .boolean).remote(onlyOff: true).says(
            "Listen for Bluetooth LE beacons."
        )
        Key("source", \.source, .source)
            .says("Adapter, capture file to replay, or controller over TCP.")
        Key("replay_speed", \.replaySpeed, .number(0...1000))
            .says("Pace of a btsnoop replay: 1 is that of the capture, 0 as fast as it goes.")
        Key("scan", \.scan.isActive, .choice([("passive", false), ("active", true)]))
            .says("Only listen, or also ask each beacon for its scan response.")
        Key("scan_interval", \.scan.interval, .duration(scanTimes))
            .remote().says("Time from the start of one scan window to the next.")
        Key("scan_window", \.scan.window, .duration(scanTimes))
            .remote().says("Time the radio listens in each scan interval, at most the interval.")
        Key("allow", \.allow, .patterns).remote().says("Beacons to keep; an empty list keeps all.")
        Key("deny", \.deny, .patterns).remote().says("Beacons to leave out, also if allowed.")
        Key("max_rate", \.maxRate, .number(0...1000, above: true))
            .remote().says("Sightings a second kept for each beacon, evenly; 1000 keeps all.")
        Key("unknown", \.keepsUnknown, .boolean)
            .remote().says("Keep advertisements that no decoder knows.")
        Key("bindkeys", table: \.bindkeys, .bindkeys)
            .says("Keys of encrypted BTHome devices by address.")
    }

    /// Four to 16,384 times 0.625 ms (Bluetooth Core Specification, Vol 4, Part E, 7.8.10).
    private static let scanTimes = Duration.microseconds(2500) ... .milliseconds(10_240)

    package var violations: [Violation] {
        guard scan.window > scan.interval else { return [] }
        let (window, interval) = (durationText(scan.window), durationText(scan.interval))
        return [
            Violation(
                ["scan_window", "scan_interval"],
                "the window of \(window) is longer than the interval of \(interval)",
                allowed: "scan_window up to scan_interval"
            )
        ]
    }
}

/// The origin of advertisements.
package enum BeaconOrigin: Sendable, Equatable, CustomStringConvertible {
    /// `hciN`: an adapter of this machine.
    case adapter(Int)
    /// `btsnoop:PATH`: a capture to replay.
    case capture(path: String)
    /// `h4:HOST:PORT`: a controller over TCP.
    case controller(HostPort)

    /// Parses the configured text; nil if it is not valid.
    init?(_ text: String) {
        if text.hasPrefix("btsnoop:") {
            let path = String(text.dropFirst(8))
            guard !path.isEmpty, path.utf8.allSatisfy({ $0 >= 32 && $0 != 127 }) else { return nil }
            self = .capture(path: path)
        } else if text.hasPrefix("h4:") {
            guard let address = HostPort(text.dropFirst(3)) else { return nil }
            self = .controller(address)
        } else {
            let digits = text.dropFirst(3)
            guard text.hasPrefix("hci"), digits.utf8.allSatisfy(\.isDigit),
                let number = UInt16(digits)
            else { return nil }
            self = .adapter(Int(number))
        }
    }

    package var description: String {
        switch self {
        case .adapter(let number): "hci\(number)"
        case .capture(let path): "btsnoop:\(path)"
        case .controller(let address): "h4:\(address)"
        }
    }
}

extension ValueFormat where Value == BeaconOrigin {
    fileprivate static var source: Self {
        var format = ValueFormat.text(
            "hciN (as hci0), btsnoop:PATH or h4:HOST:PORT",
            no: "source",
            parse: { BeaconOrigin($0) },
            written: \.description
        )
        format.namesFile = { if case .capture = $0 { true } else { false } }
        return format
    }
}

extension ValueFormat where Value == [String] {
    /// Patterns of beacons: an address, a beacon id or `kind:` and a kind, `*` for any characters.
    fileprivate static let patterns = ValueFormat.list(
        "an array of addresses, beacon ids or kind:KIND, each with * for any characters"
    ) { pattern in
        let bytes = pattern.utf8
        guard (1...128).contains(bytes.count), bytes.allSatisfy({ $0 > 32 && $0 < 127 }) else {
            return "\"\(printable(pattern))\" is not a valid pattern"
        }
        guard pattern.hasPrefix("kind:"), !pattern.contains("*") else { return nil }
        let kinds = BeaconKind.allCases.map(\.name)
        if kinds.contains(String(pattern.dropFirst(5))) { return nil }
        return "\"\(pattern)\" is not a known kind (\(kinds.joined(separator: ", ")))"
    }
}

extension ValueFormat where Value == [BluetoothAddress: [UInt8]] {
    /// Reads one key per call from the file, all at once from the environment; no message shows a
    /// key.
    fileprivate static let bindkeys = ValueFormat(
        allowed: "32 hexadecimal digits under an address, as \"A4:C1:38:00:00:01\" = \"…\"",
        read: { literal in
            switch literal {
            case .member(let address, .string(let key)): bindkey(address, key).map { [$0: $1] }
            case .unquoted(let text): bindkeyList(text)
            default: .failure(MismatchError("found \(literal.foundKind)"))
            }
        },
        // Keys are secrets: `show` prints their number instead.
        written: { _ in "{}" }
    )
}

private typealias Bindkey = (BluetoothAddress, [UInt8])

private func bindkey(_ address: String, _ key: String) -> Result<Bindkey, MismatchError> {
    guard let address = BluetoothAddress(address) else {
        return .failure(MismatchError("its name is not a Bluetooth address"))
    }
    guard let bytes = bytes(hex: key), bytes.count == 16 else {
        return .failure(MismatchError("is not a key of 16 bytes"))
    }
    return .success((address, bytes))
}

private func bindkeyList(_ text: String) -> Result<[BluetoothAddress: [UInt8]], MismatchError> {
    var keys: [BluetoothAddress: [UInt8]] = [:]
    for part in splitAtCommas(text) {
        guard let sign = part.firstIndex(of: "=") else {
            return .failure(MismatchError("found no ADDRESS=KEY"))
        }
        switch bindkey(String(part[..<sign]), String(part[part.index(after: sign)...])) {
        case .success(let (address, key)): keys[address] = key
        case .failure(let mismatch): return .failure(mismatch)
        }
    }
    return .success(keys)
}
