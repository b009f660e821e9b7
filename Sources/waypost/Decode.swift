// `waypost decode`: advertising data to JSON.
import ArgumentParser
import Beacons
import Store
import Upload

struct Decode: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Decode advertising data.",
        discussion: """
            Takes AD structures in hex, spaces allowed, and prints one JSON object a beacon with the \
            fields of a beacon record. Bare RuuviTag payloads are taken too.
            """
    )

    @Argument(help: "Hex digits.") var hex: [String]

    mutating func run() throws {
        guard let bytes = Self.bytes(hex.joined()) else {
            Output.error("decode: not hex: an even number of the digits 0-9 and a-f is wanted")
            throw ExitCode(64)
        }
        let beacons = Advertisement.decodeLeniently(bytes)
        guard !beacons.isEmpty else {
            Output.error("decode: no beacon in these \(bytes.count) bytes")
            throw ExitCode(2)
        }
        for beacon in beacons { Output.write(Self.json(beacon) + [10]) }
    }

    private static func json(_ beacon: DecodedBeacon) -> [UInt8] {
        var json = JSONText()
        json.object {
            $0.field("kind", beacon.kind.name)
            if let id = beacon.beaconID { $0.field("beacon_id", id) }
            RecordJSON.write(beacon.txPower, beacon.telemetry, beacon.data, to: &$0)
        }
        return json.bytes
    }

    /// nil for anything but pairs of hex digits, with blanks, colons and dashes between them.
    private static func bytes(_ text: String) -> [UInt8]? {
        let digits = text.filter { !$0.isWhitespace && $0 != ":" && $0 != "-" }
        var bytes: [UInt8] = []
        var high: Int?
        for digit in digits {
            guard let value = digit.isASCII ? digit.hexDigitValue : nil else { return nil }
            if let first = high {
                bytes.append(UInt8(first << 4 | value))
                high = nil
            } else {
                high = value
            }
        }
        return high == nil && !bytes.isEmpty ? bytes : nil
    }
}
