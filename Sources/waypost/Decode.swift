// `waypost decode`: decodes advertising data to JSON.
import ArgumentParser
import Beacons
import Configuration
import Daemon
import Host
import JSON
import Queue
import Records
import Setup
import Upload

struct Decode: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Decode advertising data.",
        discussion: """
            Takes AD structures in hex, spaces allowed, and prints one JSON object per beacon with \
            the fields of a beacon record. Bare Ruuvi payloads are accepted, too. `-` reads standard \
            input, one payload per line.
            """ + examples("waypost decode 0201060303AAFE", "waypost decode - <payloads.txt")
    )

    @Argument(help: .value("HEX", "Hex digits, or - for standard input.")) var hex: [String]
    @Option(
        name: .long,
        help: .value(
            "ADDRESS",
            "The sender's address: encrypted BTHome is read with its key in beacons.bindkeys."
        )
    )
    var address: String?
    @OptionGroup var options: ConfigurationOptions

    mutating func run() throws {
        var decoder = PayloadDecoder(sender: try sender())
        if let sender = decoder.sender {
            decoder.load = { [options] in
                try options.load(warns: false).values.beacons.bindkeys[sender]
            }
        }
        guard hex == ["-"] else {
            do {
                for line in try decoder.lines(hex.joined()) { Output.write(line) }
            } catch let error as PayloadError {
                throw failure("decode: \(error.why)", status: error.status)
            }
            guard decoder.isComplete else { throw ExitCode(1) }
            return
        }
        try decodeInput(&decoder)
    }

    private func sender() throws -> BluetoothAddress? {
        guard let address else { return nil }
        guard let sender = BluetoothAddress(address) else {
            Output.error(
                "decode: --address \(address): not a valid address; use a form like C0:FF:EE:00:00:01"
            )
            throw ExitCode(64)
        }
        return sender
    }

    /// Decodes standard input; a bad line gives an error object, so that outputs match inputs.
    private func decodeInput(_ decoder: inout PayloadDecoder) throws {
        var isAllDecoded = true
        while let line = readLine() {
            do {
                for object in try decoder.lines(line) { Output.write(object) }
            } catch let failure as PayloadError {
                isAllDecoded = false
                var json = JSONWriter()
                json.object { $0.field("error", failure.why) }
                Output.write(json.bytes + [10])
            }
        }
        guard isAllDecoded else { throw ExitCode(2) }
        guard decoder.isComplete else { throw ExitCode(1) }
    }
}

/// The reason why a payload cannot be decoded, with its exit status.
private struct PayloadError: Error {
    var why: String
    var status: Int32
}

/// Decodes payloads in hex to lines of JSON.
private struct PayloadDecoder {
    var sender: BluetoothAddress?
    /// Looks up the sender's key when a payload is encrypted.
    var load: () throws -> [UInt8]? = { nil }
    private var key: [UInt8]??
    /// False once an encrypted payload could not be read.
    private(set) var isComplete = true

    init(sender: BluetoothAddress?) {
        self.sender = sender
    }

    /// Returns one line per beacon; throws a `PayloadError` or an error of the configuration.
    mutating func lines(_ text: String) throws -> [[UInt8]] {
        guard let bytes = Self.bytes(text) else {
            let why = "not hex; use an even number of the digits 0-9 and a-f"
            throw PayloadError(why: why, status: 64)
        }
        let beacons = Advertisement.decodeLeniently(bytes)
        guard !beacons.isEmpty else {
            throw PayloadError(why: "no beacon in these \(bytes.count) bytes", status: 2)
        }
        return try beacons.map { beacon in
            var beacon = beacon
            if beacon.sealed != nil { try unseal(&beacon) }
            return json(beacon) + [10]
        }
    }

    private mutating func unseal(_ beacon: inout DecodedBeacon) throws {
        let key = try self.key ?? load()
        self.key = .some(key)
        if let sender, let key {
            let unread = BTHomeKeys([beacon.device ?? sender: key]).read(&beacon, from: sender)
            guard let unread else { return }
            Output.error("decode: \(unread.text(of: beacon.device ?? sender))")
        } else if let sender {
            Output.error("decode: \(sender): encrypted, and beacons.bindkeys has no key for it")
        } else {
            Output.error("decode: encrypted: --address is needed, and its key in beacons.bindkeys")
        }
        isComplete = false
    }

    private func json(_ beacon: DecodedBeacon) -> [UInt8] {
        var json = JSONWriter()
        json.object {
            $0.field("kind", beacon.kind.name)
            if let id = beacon.beaconID ?? sender?.description { $0.field("beacon_id", id) }
            if let sender { $0.field("address", sender.description) }
            RecordJSON.write(beacon.txPower, beacon.telemetry, beacon.data, to: &$0)
        }
        return json.bytes
    }

    /// Parses pairs of hex digits with blanks, colons and dashes between them; nil for other text.
    private static func bytes(_ text: String) -> [UInt8]? {
        let digits = text.filter { !$0.isWhitespace && $0 != ":" && $0 != "-" }
        return digits.isEmpty ? nil : Host.bytes(hex: digits)
    }
}
