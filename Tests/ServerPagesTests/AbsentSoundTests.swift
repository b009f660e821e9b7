// Sound that was recorded and is not at the server: its hours, and the button that asks for one.
import Foundation
import ReceiverSupport
import Support
import Testing

@testable import ServerPages

@Suite struct AbsentSoundTests {
    private static let day = "2026-11-21"

    @Test func hours_areThoseWithLessThanWasRecorded() {
        let hour: Int64 = 3_600_000
        let recorded = [
            0..<(2 * hour), (3 * hour + 1_800_000)..<(5 * hour + 30_000), 6 * hour..<7 * hour,
        ]
        // An hour with nearly all, one with half, and one with more, because lengths are estimates.
        let here = [0: hour - 100_000, hour: hour / 2, 6 * hour: hour + 5000]
        let absent = AbsentSound.hours(recorded: recorded, here: here, in: 0..<(24 * hour))
        #expect(absent.map(\.from) == [hour, 3 * hour, 4 * hour])
        #expect(absent.map(\.length) == [hour / 2, hour / 2, hour])
        let part = AbsentSound.hours(
            recorded: recorded,
            here: [:],
            in: (hour + 600_000)..<(2 * hour)
        )
        #expect(part.map(\.from) == [hour] && part.map(\.length) == [hour - 600_000])
        #expect(AbsentSound.hours(recorded: [0..<Int64.max], here: [:], in: 0..<hour).count == 1)
    }

    @Test func editor_asksForAnHour() throws {
        let receiver = try ReceiverProcess()
        func span(_ from: Int, _ to: Int) -> String {
            func time(_ hour: Int) -> String { String(format: "\(Self.day)T%02d:00:00.000Z", hour) }
            return #""from":"\#(time(from))","to":"\#(time(to))""#
        }
        try receiver.send(
            "waypost_effort",
            on: Self.day,
            [
                ("02:00:00", #""source":"audio","state":"recorded",\#(span(2, 4))"#),
                ("05:00:00", #""source":"audio","state":"failed",\#(span(5, 6))"#),
                ("06:00:00", #""source":"beacons","state":"recorded",\#(span(6, 7))"#),
                (
                    "08:00:00",
                    #""source":"audio","state":"recorded","clock":"unsynced",\#(span(8, 9))"#
                ),
            ]
        )
        let token = try receiver.enrol()
        let address = "/device/d1/\(Self.day)?zone=UTC"
        let editor = try PageClient(receiver, viewer: "eva", role: "editor")
        let page = try editor.page(address, with: "Recorded, and not at the server")
        #expect(page.components(separatedBy: "Ask for it<").count == 3)
        for hour in ["02", "03"] {
            let time = "\(Self.day)T\(hour):00:00.000Z"
            #expect(page.contains(#"name="from" value="\#(time)""#), "\(page)")
        }
        #expect(
            page.contains(#"Ask for it<span class="hidden"> of 2026-11-21 02:00:00 UTC"#),
            "\(page)"
        )

        // Who may only look sees the hours, and cannot ask.
        let viewer = try PageClient(receiver, viewer: "vic")
        let seen = try viewer.get(address).body
        #expect(seen.contains("Recorded, and not at the server") && !seen.contains("Ask for it"))
        let form = "from=\(Self.day)T02%3A00%3A00.000Z&days=\(Self.day)&zone=Europe%2FBerlin"
        #expect(try viewer.request("POST", "/device/d1/sound", form).status == 403)

        let asked = try editor.request("POST", "/device/d1/sound", form)
        #expect(asked.status == 303)
        #expect(asked.header.contains("Location: /device/d1/\(Self.day)?zone=Europe%2FBerlin\r\n"))
        let after = try editor.get(address).body
        #expect(
            after.contains("asked for<") && after.components(separatedBy: "Ask for it<").count == 2
        )
        let answer = try receiver.request(
            "GET /api/device/jobs HTTP/1.1\r\nHost: r\r\nX-Device-Token: \(token)\r\n\r\n"
        )
        #expect(
            answer.body.contains(#""kind":"audio""#) && answer.body.contains("T03:00:00.000Z"),
            "\(answer.body)"
        )
        for wrong in ["", "from=x&days=\(Self.day)", "from=\(Self.day)T02%3A00%3A00Z&days=%0D%0Ax"]
        {
            #expect(try editor.request("POST", "/device/d1/sound", wrong).status == 400, "\(wrong)")
        }
        #expect(try editor.get("/device/d1/sound").status == 404)
    }
}
