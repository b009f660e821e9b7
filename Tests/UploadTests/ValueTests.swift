import Host
import HTTP
import JSON
import Queue
import Records
import StatusBoard
import Testing
import Upload

@Suite struct UploadValueTests {
    @Test(arguments: [
        (200, "", "accepted"), (200, "{}", "accepted"), (204, " \n", "accepted"),
        (200, "[1]", "accepted"), (200, #"{"rejected":0}"#, "accepted"),
        (200, #"{"rejected":2}"#, "refused"), (200, #"{"rejected":["a"]}"#, "refused"),
        (200, "<html>", "retry"), (200, "ok", "retry"), (200, "{", "retry"),
        (400, "", "refused"), (422, "", "refused"), (413, "", "tooLarge"),
        (401, "", "tokenRefused"), (403, "", "tokenRefused"), (404, "", "endpointWrong"),
        (405, "", "endpointWrong"), (302, "", "endpointWrong"), (408, "", "retry"),
        (409, "", "inProgress"), (425, "", "retry"), (429, "", "retry"),
        (429, #"{"error":"x","stream":"a"}"#, "streamHeld"), (429, #"{"stream":""}"#, "retry"),
        (503, #"{"stream":"a"}"#, "retry"), (500, "", "retry"),
        (503, "", "retry"), (418, "", "retry"), (100, "", "retry"),
    ])
    func verdict_followsTheProtocol(status: Int, body: String, expected: String) {
        let name =
            switch Verdict(Answer(status: status, body: Array(body.utf8))) {
            case .accepted: "accepted"
            case .retry: "retry"
            case .inProgress: "inProgress"
            case .streamHeld: "streamHeld"
            case .tokenRefused: "tokenRefused"
            case .endpointWrong: "endpointWrong"
            case .tooLarge: "tooLarge"
            case .refused: "refused"
            case .unreachable, .stopped, .held: "no answer"
            }
        #expect(name == expected)
    }

    @Test(arguments: [
        (#"{"rejected": 2, "duplicates": 3}"#, 2, 3),
        (#"{"rejected":["a"],"duplicates":[1,[2],{}]}"#, 1, 3),
        (#"{"rejected":0.4,"duplicates":1e2}"#, 1, 100),
        (#"{"rejected":-3,"duplicates":null}"#, 0, 0),
        // The first of two counts, and a name may be written with escapes.
        (#"{"rejected":1,"rejected":0,"\u0064uplicates":7}"#, 1, 7),
        // Nested or non-numeric values are ignored.
        (#"{"data":{"rejected":5},"rejected":{"a":1},"duplicates":"4"}"#, 0, 0),
        (#"[{"rejected":5}]"#, 0, 0), (#"["rejected",5]"#, 0, 0),
        (#"{"rejected2":5,"reject":5}"#, 0, 0),
        (#"{"rejected":9999999999999999999999999999999999999999999999}"#, 9_999_999_999_999_999, 0),
    ])
    func reply_countsWhatWasRejectedAndWhatWasThere(body: String, rejected: Int, duplicates: Int) {
        let reply = Reply(Array(body.utf8))
        #expect(reply.form == .json)
        #expect(reply.rejected == rejected || rejected > 1 << 50 && reply.rejected == .max)
        #expect(reply.duplicates == duplicates)
    }

    @Test(arguments: [
        ("{", Reply.Form.unfinished), ("[1", .unfinished), ("\"a", .unfinished), ("-", .unfinished),
        ("12", .json), ("tru", .unfinished), ("truE", .other), ("{}x", .other), ("01", .other),
        ("[1,]", .json), ("{,}", .other), ("[}", .other), (#""\ud83d""#, .other),
        ("{\"a\" 1}", .other),
        (" \r\n\t", .blank), ("\u{FEFF}{}", .json), ("<html>", .other), ("\u{0}", .other),
    ])
    func reply_knowsJSON(body: String, form: Reply.Form) {
        #expect(Reply(Array(body.utf8)).form == form)
    }

    @Test(arguments: [
        (#"{"jobs": "a-1", "accepted": 1}"#, "a-1"), (#"{"jobs": "\u00e9 b"}"#, "é b"),
        (#"{"jobs": ""}"#, nil), (#"{"jobs": "a\nb"}"#, nil), (#"{"jobs": 7}"#, nil),
        (#"{"jobs": ["a"]}"#, nil), (#"{"more": {"jobs": "a"}}"#, nil), ("{}", nil),
        ("{\"jobs\": \"\(String(repeating: "é", count: 64))\"}", String(repeating: "é", count: 64)),
        ("{\"jobs\": \"\(String(repeating: "x", count: 65))\"}", nil),
        ("{\"jobs\": \"\(String(repeating: "x", count: 9000))\"}", nil),
    ])
    func tagOfJobs_isAShortPrintableText(_ body: String, _ tag: String?) {
        #expect(Reply(Array(body.utf8)).jobs == tag)
    }

    @Test func reply_isNotOutdoneByDepth() {
        func form(_ depth: Int) -> Reply.Form {
            Reply([UInt8](repeating: 91, count: depth) + [UInt8](repeating: 93, count: depth)).form
        }
        #expect(form(512) == .json)
        #expect(form(513) == .other)
        #expect(form(1 << 20) == .other)
    }

    @Test func retryAfter_isHonouredUpToAnHour() {
        func after(_ seconds: Int) -> Duration? {
            guard case .retry(_, let after) = Verdict(Answer(status: 503, retryAfter: seconds))
            else {
                return nil
            }
            return after
        }
        #expect(after(0) == nil)
        #expect(after(120) == .seconds(120))
        #expect(after(86_400) == .seconds(3600))
    }

    @Test func backoff_growsToFiveMinutesWithFullJitter() {
        var backoff = Pacing()
        let now = BootInstant(nanoseconds: 0)
        var limits: [Int64] = []
        for _ in 0..<6 {
            backoff.failed(at: now, after: nil, random: 0.999_999_999)
            limits.append(((backoff.until ?? now) - now).milliseconds / 1000 + 1)
        }
        #expect(limits == [30, 60, 120, 240, 300, 300])
        backoff.failed(at: now, after: nil, random: 0)
        #expect(backoff.until == now)
        // The wait the server asked for, and a minute or more of jitter: it may have given
        // everybody the same time.
        backoff.failed(at: now, after: .seconds(7), random: 0)
        #expect(backoff.until == now + .seconds(7))
        backoff.failed(at: now, after: .seconds(7), random: 0.5)
        #expect(backoff.until == now + .seconds(37))
        backoff.failed(at: now, after: .seconds(3600), random: 0.5)
        #expect(backoff.until == now + .seconds(3750))
        backoff.succeeded()
        #expect(backoff.until == nil)
    }

    @Test func enrolment_isAskedBesideTheIngestPath() {
        #expect(Enrolment.url(ingest: "https://h/api/ingest") == "https://h/api/device/verify")
    }

    @Test func fix_usesProtocolDecimals_andOmitsAbsentValues() {
        var fix = Fix(
            stamp: Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: 0)),
            mode: .twoDimensional,
            latitude: -0.00000004,
            longitude: 179.99999995
        )
        fix.speed = 0.005
        var json = JSONWriter()
        guard case .plain(let columns) = Fix.kind.shape else { return }
        let stored = zip(columns, fix.values).map { column, value -> ColumnValue in
            guard case .scaled(let decimals) = column.form else { return value }
            return value.scaled(decimals).map { .integer($0) } ?? .none
        }
        RecordJSON.write(
            columns,
            stored,
            id: "x",
            at: (WallTime(milliseconds: 1_795_235_407_123), .corrected),
            seen: WallTime(milliseconds: 5000),
            to: &json
        ) { ($1.wall, .corrected) }
        #expect(
            String(decoding: json.bytes, as: UTF8.self)
                == #"{"id":"x","timestamp":"2026-11-21T04:30:07.123Z","latitude":0.0000000,"longitude":180.0000000,"speed":0.01,"fix":"2d","clock":"corrected"}"#
        )
    }

    @Test func telemetry_isWrittenByItsTable() {
        var telemetry = Telemetry()
        telemetry.add(.temperature, scaled: 2213)
        telemetry.add(.temperature, scaled: -5)
        telemetry.add(.speed, scaled: 1)
        telemetry.add(.isDoorOpen, scaled: 1)
        telemetry.add(.motion, scaled: 0)
        telemetry.add(.button, scaled: 0)
        telemetry.add(.button, scaled: 129)
        telemetry.add(.button, scaled: 7)
        telemetry.add(.text, bytes: [34, 0xC3])
        telemetry.add(.raw, bytes: [0, 255])
        telemetry.add(.temperature, scaled: 100)
        var json = JSONWriter()
        json.object { RecordJSON.write(-59, telemetry, [], to: &$0) }
        #expect(
            String(decoding: json.bytes, as: UTF8.self)
                == #"{"tx_power":-59,"telemetry":{"temperature_c":22.13,"temperature_c_2":-0.05,"#
                + #""speed_m_s":0.000001,"door_open":true,"motion":false,"button":"none","#
                + #""button_2":"hold_release","button_3":"event_7","text":"\"\#u{FFFD}","#
                + #""raw":"00ff","temperature_c_3":1.00}}"#
        )
    }

    @Test func sighting_withoutAnIDThatLasts_hasNone() {
        let sighting = Sighting(
            identity: BeaconIdentity(
                kind: .bthome,
                beaconID: "",
                address: BluetoothAddress(value: 0x4000_0000_0001),
                addressType: .randomResolvable
            ),
            rssi: -70,
            data: [0xD2, 0xFC],
            stamp: Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: 0))
        )
        var json = JSONWriter()
        let moment = (WallTime(milliseconds: 1_795_235_407_123), ClockQuality.synced)
        RecordJSON.write(sighting, id: "x", at: moment, to: &json)
        #expect(
            String(decoding: json.bytes, as: UTF8.self)
                == #"{"id":"x","timestamp":"2026-11-21T04:30:07.123Z","kind":"bthome","#
                + #""address":"40:00:00:00:00:01","address_type":"random_resolvable","#
                + #""rssi":-70,"data":"d2fc","clock":"synced"}"#
        )
    }
}
