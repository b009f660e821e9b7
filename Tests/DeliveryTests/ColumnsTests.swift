import Foundation
import Support
import Testing

@testable import ServerArchive
@testable import ServerBase
@testable import ServerWeb
@testable import Upload

/// The gateway's columns become the same rows again at the server, byte for byte.
@Suite struct ColumnsTests {
    /// `WAYPOST_COLUMNS_BATCHES`: how many; 100,000 take some minutes in a release build.
    private static let batches =
        ProcessInfo.processInfo.environment["WAYPOST_COLUMNS_BATCHES"].flatMap { Int($0) } ?? 400

    @Test func anyBatch_comesBackAsItWas() throws {
        for seed in 0..<Self.batches {
            var random = RandomRows(seed: UInt64(seed))
            let batch = random.batch()
            guard let table = table(batch) else {
                #expect(random.hasUnfit, "seed \(seed): rows that columns carry were refused")
                continue
            }
            let expected = body(data: batch.map { Array($0.utf8) })
            let rows = try expanded(table)
            try #require(rows == expected, "seed \(seed)")
        }
    }

    /// The program in the manual page reads the same values.
    @Test func manual_expandsThem() throws {
        let page = try String(contentsOfFile: "deploy/man/waypost-protocol.7.scd", encoding: .utf8)
        let code = try #require(
            page.split(separator: "```").map(String.init).first {
                $0.contains("def expand(")
            }
        )
        let lines = code.split(separator: "\n").count
        #expect(lines <= 25)
        let folder = TemporaryFolder()
        let cases = (0..<60).compactMap { seed -> String? in
            var rows = RandomRows(seed: UInt64(seed))
            let batch = rows.batch()
            guard let table = table(batch) else { return nil }
            let columns = String(decoding: table, as: UTF8.self)
            return "{\"columns\":\(columns),\"rows\":[\(batch.joined(separator: ","))]}"
        }
        #expect(cases.count > 30)
        let file = folder.path + "/cases.ndjson"
        try Data(cases.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: file))
        let script =
            code + """

                import json, sys
                for line in open(sys.argv[1], encoding="utf-8"):
                    case = json.loads(line)
                    rows = expand(case["columns"])
                    assert rows == case["rows"], (rows, case["rows"])
                    assert [list(row) for row in rows] == [list(row) for row in case["rows"]]
                """
        let python = try Process.run("/usr/bin/python3", ["-c", script, file])
        #expect(python.status == 0, "\(python)")
    }

    @Test func eachForm_isTheShortest() throws {
        let rows = [
            #"{"id":"0a1b2c3d-0000-8000-8000-0000000000ff","timestamp":"2026-11-29T23:59:59.990Z","#
                + #""kind":"a","rssi":-70,"lat":46.5200001,"clock":"synced"}"#,
            #"{"id":"0a1b2c3d-0000-8000-8000-000000000100","timestamp":"2026-11-30T00:00:00.001Z","#
                + #""kind":"long","rssi":-71,"lat":46.5200005,"data":"00","clock":"synced"}"#,
            #"{"id":"0a1b2c3d-0000-8000-8000-000000000102","timestamp":"2026-11-30T00:00:00.000Z","#
                + #""kind":"long","lat":46.5199999,"data":"01","clock":"synced"}"#,
        ]
        let expected =
            #"{"count":3,"members":{"id":{"id":"0a1b2c3d-0000-8000-8000-0000000000ff","steps":[1,2]},"#
            + #""timestamp":{"time":"2026-11-29T23:59:59.990Z","ms":[11,-1]},"#
            + #""kind":{"of":["a","long"],"at":[0,1,1]},"#
            + #""rssi":{"from":-70,"steps":[-1],"has":[[0,2]]},"#
            + #""lat":{"from":465200001,"steps":[4,-6],"scale":7},"#
            + #""data":{"values":["00","01"],"has":[[1,2]]},"clock":{"const":"synced"}}}"#
        let made = try #require(table(rows))
        #expect(String(decoding: made, as: UTF8.self) == expected)
        #expect(try expanded(made) == body(data: rows.map { Array($0.utf8) }))
    }

    /// The second list is what the first one was: compressed it costs next to nothing.
    @Test func columnThatFollowsFromAnother_hasTheSameList() throws {
        let rows = (0..<40).map { number in
            let beacon = number * number % 7
            return "{\"a\":\"beacon-\(beacon)\",\"b\":\"kind-\(beacon % 2)\"}"
        }
        let made = try #require(table(rows))
        let lists = String(decoding: made, as: UTF8.self).components(separatedBy: "\"at\":")
            .dropFirst().map { $0.prefix { $0 != "]" } }
        #expect(lists.count == 2 && lists.first == lists.last)
        #expect(try expanded(made) == body(data: rows.map { Array($0.utf8) }))
    }

    @Test(arguments: [
        // White space, an escaped name, a name twice, and another order.
        [#"{"a":1, "b":2}"#], [#"{"\u0061":1}"#], [#"{"a":1,"a":2}"#],
        [#"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#],
    ])
    func unfitRows_areRefused(rows: [String]) { #expect(table(rows) == nil) }

    @Test(arguments: [
        #"{"count":2,"members":{"a":{"values":[1]}}}"#,
        #"{"count":2,"members":{"a":{"values":[1,2,3]}}}"#,
        #"{"count":2,"members":{"a":{"of":[1],"at":[0,1]}}}"#,
        #"{"count":2,"members":{"a":{"of":[1],"at":[0,-1]}}}"#,
        #"{"count":2,"members":{"a":{"from":1,"steps":[1,1]}}}"#,
        #"{"count":2,"members":{"a":{"from":9223372036854775806,"steps":[9]}}}"#,
        #"{"count":2,"members":{"a":{"from":1,"steps":[1],"scale":16}}}"#,
        #"{"count":2,"members":{"a":{"from":1,"steps":[1.0]}}}"#,
        #"{"count":2,"members":{"a":{"time":"2026-11-29T00:00:00Z","ms":[1]}}}"#,
        #"{"count":2,"members":{"a":{"time":"2026-11-29T00:00:00.000Z","ms":[-9000000000000]}}}"#,
        #"{"count":2,"members":{"a":{"id":"0","steps":[1]}}}"#,
        #"{"count":2,"members":{"a":{"id":"ffffffffffff","steps":[1]}}}"#,
        #"{"count":2,"members":{"a":{"const":1,"values":[1,1]}}}"#,
        #"{"count":2,"members":{"a":{"const":1,"const":1}}}"#,
        #"{"count":2,"members":{"a":{"const":1,"has":[[0,3]]}}}"#,
        #"{"count":2,"members":{"a":{"const":1,"has":[[1,1],[0,1]]}}}"#,
        #"{"count":2,"members":{"a":{"const":1,"has":[[0]]}}}"#,
        #"{"count":2,"members":{"a":{}}}"#, #"{"count":2,"members":{"a":1}}"#,
        #"{"count":-1,"members":{}}"#, #"{"members":{}}"#, #"[]"#, #"{"count":2,"rows":[]}"#,
    ])
    func wrongColumns_areRefused(columns: String) throws {
        let error = #expect(throws: HTTPError.self) { try expanded(Array(columns.utf8)) }
        #expect(error?.status == 422 && error?.reason.contains("columns: ") == true)
    }

    /// A few bytes that would be gigabytes of rows cost nothing.
    @Test(arguments: [
        #"{"count":1000000000,"members":{"a":{"const":"b"}}}"#,
        #"{"count":60000000,"members":{"a":{"const":"b"},"c":{"const":"d"}}}"#,
        #"{"count":67108864,"members":{}}"#,
    ])
    func constantABillionTimes_isRefusedAtOnce(columns: String) throws {
        let error = #expect(throws: HTTPError.self) { try expanded(Array(columns.utf8)) }
        #expect(error?.status == 413 || error?.status == 422)
    }

    // MARK: Both sides

    private func table(_ rows: [String]) -> [UInt8]? {
        var table = ColumnTable()
        do {
            for row in rows { try table.append(Array(row.utf8)) }
        } catch {
            return nil
        }
        return table.json()
    }

    private static let opening = #"{"stream_name":"s","#
    private static let closing = #","batch_metadata":{}}"#

    private func body(data rows: [[UInt8]]) -> [UInt8] {
        Array("\(Self.opening)\"data\":[".utf8) + rows.joined(separator: ",".utf8)
            + Array("]\(Self.closing)".utf8)
    }

    private func expanded(_ columns: [UInt8]) throws -> [UInt8] {
        let start = Self.opening.utf8.count
        let body = Array("\(Self.opening)\"columns\":".utf8) + columns + Array(Self.closing.utf8)
        let value = (start + 10)..<(start + 10 + columns.count)
        let folder = TemporaryFolder()
        let output = Spool(folder: folder.path, memory: 1 << 20)
        try body.withUnsafeBytes { bytes in
            let columns = IncomingColumns(member: start..<value.upperBound, value: value)
            let view = ByteView(bytes, isMapped: false)
            try columns.writeRows(of: view, to: output, atMost: 64 << 20, limit: .checking)
        }
        return try output.withView { Array($0.all) }
    }
}

/// Rows of random streams, as `JSONWriter` and the intake write them: without blanks between parts.
private struct RandomRows {
    private var chance: SeededRandom
    /// The batch may have rows that columns do not carry, or whose order is known too late.
    private(set) var hasUnfit = false

    init(seed: UInt64) { chance = SeededRandom(seed: seed) }

    private mutating func roll(_ sides: Int) -> Int { Int(chance.next() % UInt64(sides)) }

    mutating func batch() -> [String] {
        let names = Array(
            ["id", "timestamp", "a", "b", "né", "x y", "", "deep"].prefix(1 + roll(8))
        )
        let kinds = names.map { _ in roll(12) }
        let rareness = names.map { _ in roll(4) == 0 ? 1 + roll(5) : 1_000_000 }
        let isTwisted = roll(20) == 0
        hasUnfit = isTwisted || rareness.contains { $0 < 1_000_000 }
        var (number, time) = (Int64(roll(1 << 40)), Int64(roll(1 << 41)))
        return (0..<(1 + roll(40))).map { _ in
            number += Int64(roll(3))
            time += Int64(roll(5000)) - 100
            var members = names.indices.compactMap { place -> String? in
                guard roll(rareness[place]) != 1 else { return nil }
                return "\"\(names[place])\":\(value(kinds[place], number, time))"
            }
            if isTwisted, roll(3) == 0 { members.reverse() }
            return "{\(members.joined(separator: ","))}"
        }
    }

    private mutating func value(_ kind: Int, _ number: Int64, _ time: Int64) -> String {
        switch kind {
        case 0:
            let digits = String(number, radix: 16)
            let zeros = String(repeating: "0", count: 12 - digits.count)
            return "\"0a1b2c3d-4e5f-8000-8000-\(zeros)\(digits)\""
        case 1:
            let date = Date(timeIntervalSince1970: Double(time / 1000))
            let text = date.formatted(.iso8601)
            return "\"\(text.dropLast()).\(String(format: "%03d", Int(time % 1000)))Z\""
        case 2: return "\(roll(100) - 50)"
        case 3: return String(format: "%.\(1 + roll(2))f", Double(roll(10_000)) / 100)
        case 4: return String(format: "%.7f", 46 + Double(roll(1000)) / 1e7)
        case 5: return ["true", "false", "null", "-0", "1e5", "1E-2", "0.10", "-0.0"][roll(8)]
        case 6: return ["\"synced\"", "\"unsynced\""][roll(2)]
        case 7: return "\"\(["é", "😀", "\\n", "\\u0000", "a,b", "}", "\\\""][roll(7)])\(roll(3))\""
        // The second follows from the first.
        case 9: return "\"beacon-\(number % 7)\""
        case 10: return "\"kind-\(number % 7 % 2)\""
        case 8: return "{\"t\":\(roll(3)),\"l\":[1, {\"x\":\"]\"}, []]}"
        default: return "\(Int64(bitPattern: chance.next()))"
        }
    }
}
