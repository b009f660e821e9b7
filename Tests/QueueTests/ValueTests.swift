@testable import Queue
import QueueSupport
import JSON
import Records
import SQLite
import Testing

@Suite struct ValueTests {
    private func seed(_ first: Int64, _ factor: Int) -> RecordIDs.Seed {
        RecordIDs.Seed(
            first: first,
            seed: (0..<16).map { UInt8(truncatingIfNeeded: $0 * factor) }
        )
    }

    @Test func recordIDs_areUUIDsOfVersionEight_eachOnce() throws {
        var seen: Set<String> = []
        let streams = StreamList().streams
        for stream in streams {
            let ids = RecordIDs(stream, [seed(1, 37)])
            let other = RecordIDs(stream, [seed(1, 41)])
            for sequence in [1, 2, 255, 1 << 39] as [Int64] {
                let id = try ids.id(sequence)
                #expect(id.utf8.count == 36)
                #expect(Array(id)[14] == "8")
                #expect("89ab".contains(Array(id)[19]))
                #expect(try id == ids.id(sequence))
                seen.insert(id)
                seen.insert(try other.id(sequence))
            }
        }
        #expect(seen.count == streams.count * 8)
    }

    @Test func recordIDs_followTheStartsOfTheProgram() throws {
        let ids = RecordIDs(.beacons, [seed(1, 37), seed(11, 41)])
        let first = RecordIDs(.beacons, [seed(1, 37)])
        #expect(try ids.id(10) == first.id(10))
        #expect(try ids.id(11) != first.id(11))
        #expect(throws: SQLiteError.self) { try RecordIDs(.beacons, []).id(1) }
    }

    @Test func telemetry_keepsValuesRoundedByItsTable() {
        var telemetry = Telemetry()
        telemetry.add(.temperature, 24.2999)
        telemetry.add(.temperature, -163.835)
        telemetry.add(.humidity, .nan)
        telemetry.add(.pressure, scaled: 115_534)
        telemetry.add(.accelerationX, scaled: -32_767)
        let readings = telemetry.readings.map { "\($0.quantity.key)=\($0.scaled)" }
        #expect(
            readings == [
                "temperature_c=2430", "temperature_c=-16384", "pressure_pa=115534",
                "acceleration_x_mg=-32767",
            ]
        )
        #expect(Telemetry(packed: telemetry.packed) == telemetry)
    }

    @Test func telemetry_keepsTextAndBytes() {
        var telemetry = Telemetry()
        telemetry.add(.text, bytes: Array("é\0".utf8))
        telemetry.add(.raw, bytes: [])
        telemetry.add(.temperature, bytes: [1])
        telemetry.add(.button, scaled: 128)
        #expect(
            telemetry.readings == [
                Reading(quantity: .text, scaled: 3, bytes: [0xC3, 0xA9, 0]),
                Reading(quantity: .raw, scaled: 0), Reading(quantity: .button, scaled: 128),
            ]
        )
        #expect(Telemetry(packed: telemetry.packed) == telemetry)
    }

    @Test func quantities_haveUniqueKeys_andStableNumbers() {
        #expect(Set(Quantity.allCases.map(\.key)).count == Quantity.allCases.count)
        #expect(Quantity.allCases.map { Int($0.rawValue) } == Array(1...Quantity.allCases.count))
        #expect(Quantity(rawValue: 13)?.key == "version")
        #expect(Quantity(rawValue: 91)?.key == "window_open")
    }

    @Test(arguments: [
        [0], [1], [1, 0x80], [255, 1], [UInt8](repeating: 0x80, count: 20), [57, 4, 65], [58, 1],
    ])
    func telemetry_refusesBytesThatItNeverWrote(bytes: [UInt8]) {
        #expect(Telemetry(packed: bytes) == nil)
    }

    @Test func json_escapesWhatMustBeEscaped() {
        var json = JSONWriter()
        json.object {
            $0.field("a\"b", "\u{01}\n\\é")
            $0.field("n", Double.nan)
            $0.field("d", scaled: -5, decimals: 2)
            $0.field("e", scaled: 1234567, decimals: 7)
            $0.key("list")
            $0.array {
                $0.value("x")
                $0.raw("1")
            }
        }
        #expect(
            String(decoding: json.bytes, as: UTF8.self)
                == #"{"a\"b":"\u0001\u000a\\é","n":null,"d":-0.05,"e":0.1234567,"list":["x",1]}"#
        )
    }

    /// Text is scanned eight bytes at a time: characters to escape may be at any position of any
    /// length.
    @Test func json_escapesAtEachPlace() {
        let units =
            (0..<128).map { String(UnicodeScalar(UInt8($0))) } + ["é", "\u{80}", "\u{FFFF}", "🐝"]
        for length in 1...25 {
            for place in 0..<length {
                for unit in units {
                    let before = String(repeating: "!", count: place)
                    let after = String(repeating: "~", count: length - place - 1)
                    var json = JSONWriter()
                    json.value(before + unit + after)
                    let byte = unit.utf8.first ?? 0
                    let hex = String(byte, radix: 16)
                    let escaped =
                        byte < 0x20
                        ? "\\u00\(hex.count == 1 ? "0" : "")\(hex)"
                        : unit == "\"" || unit == "\\" ? "\\\(unit)" : unit
                    guard json.bytes == Array("\"\(before)\(escaped)\(after)\"".utf8) else {
                        Issue.record("\(unit.debugDescription) at \(place) of \(length)")
                        return
                    }
                }
            }
        }
    }
}
