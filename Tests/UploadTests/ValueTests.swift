import Board
import Host
import Store
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
        (409, "", "retry"), (425, "", "retry"), (429, "", "retry"), (500, "", "retry"),
        (503, "", "retry"), (418, "", "retry"), (100, "", "retry"),
    ])
    func verdict_followsTheContractsTable(status: Int, body: String, expected: String) {
        let name =
            switch Verdict(Answer(status: status, body: Array(body.utf8))) {
            case .accepted: "accepted"
            case .retry: "retry"
            case .tokenRefused: "tokenRefused"
            case .endpointWrong: "endpointWrong"
            case .tooLarge: "tooLarge"
            case .refused: "refused"
            }
        #expect(name == expected)
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
        var backoff = Backoff()
        let now = BootInstant(nanoseconds: 0)
        var limits: [Int64] = []
        for _ in 0..<6 {
            backoff.failed(at: now, after: nil, random: 0.999_999_999)
            limits.append(((backoff.until ?? now) - now).milliseconds / 1000 + 1)
        }
        #expect(limits == [30, 60, 120, 240, 300, 300])
        backoff.failed(at: now, after: nil, random: 0)
        #expect(backoff.allows(now))
        // What the server asked for, and a minute or more of jitter: it may have told everybody the same moment.
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

    @Test func fix_isWrittenWithTheContractsDecimals_andWhatIsAbsentStaysAbsent() {
        var fix = Fix(
            stamp: Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: 0)),
            mode: .twoDimensional,
            latitude: -0.00000004,
            longitude: 179.99999995
        )
        fix.speed = 0.005
        var json = JSONText()
        RecordJSON.write(
            fix,
            id: "x",
            at: (WallTime(milliseconds: 1_795_235_407_123), .corrected),
            to: &json
        )
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
        var json = JSONText()
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
        var json = JSONText()
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
