// Fuzz targets for data from the radio and from captures of it.
import Configuration
import FuzzSupport
import Glibc
import Host
import Queue
import Records
import SourceSupport
import Support

@testable import Beacons

enum BeaconTargets {
    static let all: [FuzzTarget] = [
        FuzzTarget(name: "hci", run: events),
        FuzzTarget(name: "ad") { check(Advertisement.decode($0[...], unknown: true)) },
        FuzzTarget(name: "decode") { check(Advertisement.decodeLeniently($0)) },
        FuzzTarget(name: "ibeacon") { check([IBeacon.decode($0[...])]) },
        FuzzTarget(name: "altbeacon") { check([AltBeacon.decode($0[...])]) },
        FuzzTarget(name: "eddystone") { check([Eddystone.decode($0[...])]) },
        FuzzTarget(name: "bthome") { check([BTHome.decode($0[...])]) },
        FuzzTarget(name: "ruuvi") { check([Ruuvi.decode($0[...])]) },
        FuzzTarget(name: "btsnoop", run: capture),
    ]

    /// Checks that a decoder's result survives its storage.
    private static func check(_ beacons: [DecodedBeacon?]) {
        for case let beacon? in beacons {
            let telemetry = beacon.telemetry
            precondition(Telemetry(packed: telemetry.packed) == telemetry)
            precondition(telemetry.readings.count <= telemetry.packed.count)
            // A byte of an Eddystone URL decodes to at most six; inputs have up to 8192.
            precondition(beacon.beaconID?.utf8.count ?? 0 <= 6 * 8192 + 64)
        }
    }

    /// Feeds events in pieces to parser, reassembly, decoders, filter and throttle.
    private static func events(_ input: [UInt8]) {
        var settings = BeaconSettings()
        settings.keepsUnknown = true
        // Keys for the addresses in the corpus, so that encrypted payloads are opened or refused.
        settings.bindkeys = [
            BluetoothAddress(value: 0xC605_0403_0201): Array(0..<16),
            BluetoothAddress(value: 0x4605_0403_0201): Array(0..<16),
        ]
        settings.deny = ["c0:ff:*:01", "kind:altbeacon"]
        var intake = SightingIntake(settings, RecordingSink())
        var parser = ReportParser()
        var stamp = Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: 0))
        for piece in pieces(input) {
            stamp = stamp.advanced(by: .milliseconds(100))
            for report in parser.parse(piece) {
                precondition(report.data.count <= 1650 + 255)
                intake.receive(report, at: stamp) { check([decoded($0)]) }
            }
        }
        precondition(parser.malformed >= 0)
    }

    private static func decoded(_ sighting: Sighting) -> DecodedBeacon {
        var beacon = DecodedBeacon(kind: sighting.identity.kind)
        beacon.telemetry = sighting.telemetry
        return beacon
    }

    /// A file without a name.
    private static let file: Int32 = {
        var name = "/tmp/waypost-fuzz.XXXXXX".utf8CString.map { $0 }
        let number = mkstemp(&name)
        unlink(name)
        return number
    }()

    private static func capture(_ input: [UInt8]) {
        _ = ftruncate(file, 0)
        _ = pwrite(file, input, input.count, 0)
        guard var capture = try? BtsnoopFile(path: "/proc/self/fd/\(file)") else { return }
        var parser = ReportParser()
        var records = 0
        while let record = capture.next() {
            records += 1
            _ = parser.parse(record.event)
        }
        // A record has a header of 24 bytes.
        precondition(records <= input.count / 24)
    }
}
