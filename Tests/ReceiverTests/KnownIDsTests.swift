// The ids of stored records: exact for any id in any order, and small for those of gateways.
import Foundation
import SQLite
import Support
import Testing

@testable import ServerArchive

@Suite struct KnownIDsTests {
    private func open() throws -> Connection {
        let index = try Connection(path: ":memory:", access: .readWrite)
        try index.execute(KnownRecords.schema)
        return index
    }

    /// Adds ids as one batch of a device; returns those that were new.
    private func claim(
        _ ids: [String],
        of device: String = "d1",
        _ index: borrowing Connection
    ) throws -> [String] {
        var known = try KnownIDs(of: device, index)
        var new: [String] = []
        for id in ids where try known.claim(id, index) { new.append(id) }
        try known.finish(index)
        return new
    }

    private func contains(
        _ id: String,
        of device: String = "d1",
        _ index: borrowing Connection
    ) throws -> Bool {
        var known = try KnownIDs(of: device, index)
        return try known.contains(id, index)
    }

    private func ranges(_ index: borrowing Connection) throws -> Int64? {
        try index.integer("SELECT count(*) FROM id_ranges")
    }

    private static func id(_ low: UInt64, high: UInt64 = 0x0190_a1b2_c3d4_8e5f) -> String {
        let digits = String(format: "%016llx%016llx", high, low)
        var text = ""
        for (place, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(place) { text.append("-") }
            text.append(digit)
        }
        return text
    }

    /// Every id is new once, in batches that overlap, repeat, and come in any order.
    @Test(arguments: 0..<40) func idsInAnyOrder_areNewOnce(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let index = try open()
        let starts: [UInt64] = [0, 0x7FFF_FFFF_FFFF_FFE0, 0x8E01_00FF_FFFF_FFF0, .max - 60]
        var stored: Set<String> = []
        for _ in 0..<30 {
            let start = starts.randomElement(using: &random) ?? 0
            let high: UInt64 = Bool.random(using: &random) ? 0 : .max
            let first = UInt64.random(in: 0...40, using: &random)
            let count = UInt64.random(in: 1...20, using: &random)
            var lows = (0..<count).map { start + first + $0 }
            switch Int.random(in: 0..<4, using: &random) {
            case 0: lows.reverse()
            case 1: lows.shuffle(using: &random)
            case 2: lows = lows.filter { _ in Bool.random(using: &random) } + lows
            default: break
            }
            let ids = lows.map { Self.id($0, high: high) }
            var expected: [String] = []
            for id in ids where stored.insert(id).inserted { expected.append(id) }
            #expect(try claim(ids, index) == expected)
        }
        for start in starts {
            for high in [UInt64(0), .max] {
                for low in start...start + 60 {
                    let id = Self.id(low, high: high)
                    #expect(try contains(id, index) == stored.contains(id))
                }
            }
        }
        // No two ranges touch, so there are as few as can be.
        let touching = """
            SELECT count(*) FROM id_ranges AS one JOIN id_ranges AS other USING (device, high)
            WHERE one.first<other.first AND one.last>=other.first-1
            """
        #expect(try index.integer(touching) == 0)
        #expect(try index.integer("SELECT sum(last-first+1) FROM id_ranges") == Int64(stored.count))
    }

    @Test func rangesAtTheLimits_joinNothing() throws {
        let index = try open()
        let limits: [UInt64] = [0, .max, 1 << 63, (1 << 63) - 1]
        let ids = [UInt64(0), .max].flatMap { high in limits.map { Self.id($0, high: high) } }
        #expect(try claim(ids, index) == ids)
        #expect(try claim(ids.reversed(), index) == [])
        // The two in the middle are consecutive.
        #expect(try ranges(index) == 6)
        #expect(try !contains(Self.id(1, high: 0), index))
        #expect(try !contains(Self.id(0, high: 1), index))
    }

    /// Any other form keeps its own text, so that no two ids become one.
    @Test func idsOfOtherForms_areTexts() throws {
        let index = try open()
        let uuid = Self.id(0xabcd)
        let others = [
            uuid.uppercased(), String(uuid.dropLast()), uuid + "0", "a", "1", "01", "lake-7",
            uuid.replacingOccurrences(of: "-", with: "_"), "-" + uuid.dropFirst(),
            uuid.replacingOccurrences(of: "-", with: "0"), String(repeating: "-", count: 36),
            String(uuid.dropLast()) + "g",
        ]
        #expect(try claim([uuid] + others, index) == [uuid] + others)
        #expect(try claim(others + [uuid], index) == [])
        #expect(try ranges(index) == 1)
        for id in others { #expect(try contains(id, index)) }
    }

    @Test func idOfADevice_blocksNoOther() throws {
        let index = try open()
        let ids = [Self.id(5), "a"]
        #expect(try claim(ids, of: "d1", index) == ids)
        #expect(try !contains(ids[0], of: "d2", index))
        #expect(try claim(ids, of: "d2", index) == ids)
        #expect(try claim(ids, of: "d2", index) == [])
    }

    /// The newest first, and holes that fill up later.
    @Test func gatewaysIds_takeOneRow() throws {
        let index = try open()
        let ids = (0..<3000).map { Self.id(0x8e01_0200_0000_0001 + UInt64($0)) }
        for part in [2000..<3000, 0..<500, 700..<2000, 500..<700] {
            #expect(try claim(Array(ids[part]), index).count == part.count)
        }
        #expect(try ranges(index) == 1)
        #expect(try claim(ids.shuffled(), index) == [])
    }

    /// Somebody may have changed a backup that was restored: no answer is promised, only an end.
    @Test func rowsThatContradictEachOther_stopNothing() throws {
        let index = try open()
        let ids = (0..<20).map { Self.id(UInt64($0)) }
        #expect(try claim([ids[0]], index) == [ids[0]])
        for row in ["first+5, first+3", "first+8, 'x'", "'a', 'b'", "first+9, first+99"] {
            try index.execute(
                "INSERT OR REPLACE INTO id_ranges SELECT device, high, \(row) FROM id_ranges LIMIT 1"
            )
        }
        _ = try claim(ids.reversed() + ids, index)
        #expect(try claim(ids, index) == [])
    }
}
