// The sound of a day and of an hour in Debian's Chromium.
import ReceiverSupport
import Support
import Testing

@testable import ServerPages

@Suite struct AudioBrowserTests {
    @Test(.enabled(if: Tab.isThere))
    func hour_isPlayedAsOne_fromTheChosenTime() throws {
        let receiver = try ReceiverProcess()
        let day = "2026-11-21"
        // The second begins before the first ends; the third is somewhat later.
        try SentAudio.send(
            receiver,
            [("d1", 3600, 2), ("d1", 3601, 1.5), ("d1", 3640, 1)],
            on: day
        )
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d1/\(day)", with: "3 chunks")
        let tab = try Tab(browser, "/device/d1/\(day)/sound/01?at=1795222840000")
        let time = "document.querySelector('#hour .at').textContent"
        let button = "document.querySelector('#hour button')"
        #expect(try tab.ask(time) == #""01:00:40""#)
        // From the first: what was played, in order.
        _ = try tab.ask(
            [
                "window.played = []",
                "const note = () => { const row = document.querySelector('.playing'); if (row && played.at(-1) !== row) played.push(row) }",
                "new MutationObserver(note).observe(document.body, { subtree: true, attributes: true })",
                "const slider = document.querySelector('#hour input')", "slider.value = 0",
                "slider.oninput()", "\(button).click()",
            ].joined(separator: "; ")
        )
        #expect(try tab.ask("\(button).textContent") == #""Pause""#)
        try tab.waitFor(#""Play the hour""#, of: "\(button).textContent")
        // The slider at the start, three chunks, and the start again.
        let starts = "played.map(row => row.dataset.start - 1795222800000).join()"
        #expect(try tab.ask(starts) == #""0,1000,40000,0""#)
        #expect(try tab.ask(time) == #""01:00:00""#)
    }

    /// The date is that of the hour in the browser's zone, wherever an hour is shown.
    @Test(
        .enabled(if: Tab.isThere),
        arguments: [
            ("UTC", "2026-11-21 03:00"), ("America/Los_Angeles", "2026-11-20 19:00"),
            ("Asia/Kathmandu", "2026-11-21 08:45"), ("Pacific/Kiritimati", "2026-11-21 17:00"),
        ]
    )
    func hour_hasTheLocalDate(zone: String, local: String) throws {
        let receiver = try ReceiverProcess()
        let day = "2026-11-21"
        try SentAudio.send(receiver, [("d1", 3 * 3600, 1)], on: day)
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d1/\(day)", with: "1 chunk")
        let hour = try Tab(browser, "/device/d1/\(day)/sound/03", zone: zone)
        try hour.waitFor(
            #""d1, UTC day 2026-11-21, \#(local)""#,
            of: "document.querySelector('h1').textContent"
        )
        #expect(try hour.ask("document.title.startsWith('d1, 2026-11-21 03:00 UTC')") == "true")
        let player = "document.querySelector('audio').ariaLabel"
        #expect(try hour.ask(player) == #""Sound of 2026-11-21 03:00:00 UTC""#)
        let page = try Tab(browser, "/device/d1/\(local.prefix(10))", zone: zone)
        try page.waitFor(#""\#(local)""#, of: "document.querySelector('.days a').textContent")
    }

    /// Loud is bright: a tone is a line at its height, and a click on the level goes to its time.
    @Test(.enabled(if: Tab.isThere))
    func hour_showsASpectrogram_andSeeksInIt() throws {
        let receiver = try ReceiverProcess()
        let day = "2026-11-21"
        try SentAudio.send(receiver, [("d1", 3600, 2), ("d1", 3640, 1)], on: day, tone: 1000)
        let browser = try PageClient(receiver, viewer: "anna")
        _ = try browser.page("/device/d1/\(day)", with: "2 chunks")
        let tab = try Tab(browser, "/device/d1/\(day)/sound/01")
        // The brightest row of the middle column, from the bottom; 256 rows are 4 kHz.
        let canvas = "document.querySelector('.spectrum canvas')"
        let brightest = [
            "(() => { const canvas = \(canvas), [x, height] = [canvas.width >> 1, canvas.height]",
            "if (height !== 256) return -1",
            "const data = canvas.getContext('2d').getImageData(x, 0, 1, height).data",
            "const sums = Array.from({ length: height }, (_, row) => data[4 * row] + data[4 * row + 1] + data[4 * row + 2])",
            "return height - 1 - sums.indexOf(Math.max(...sums)) })()",
        ].joined(separator: "; ")
        try tab.waitFor("64", of: brightest)
        #expect(
            try tab.ask("document.querySelector('.spectrum .units').textContent")
                == #""4 kHz2 kHz0""#
        )
        let cursor =
            "[...document.querySelectorAll('.axes i')].map(one => Math.round(parseFloat(one.style.left))).join()"
        #expect(try tab.ask(cursor) == #""0,0""#)
        // A click on the level reaches the slider; 40.5 of 41 seconds are half of the second chunk.
        let click = [
            "(() => { const box = document.querySelector('.levels input').getBoundingClientRect()",
            "const at = [box.left + box.width * 40.5 / 41, box.top + 20]",
            "return document.elementFromPoint(...at).getAttribute('aria-label') })()",
        ].joined(separator: "; ")
        #expect(try tab.ask(click) == #""Time in the hour""#)
        _ = try tab.ask(
            "(() => { const slider = document.querySelector('.levels input'); slider.value = 40500; slider.oninput() })()"
        )
        #expect(try tab.ask(cursor) == #""99,50""#)
        try tab.waitFor("64", of: brightest)
    }

    /// The level of a day and that of a week lead to the hour of a point.
    @Test(.enabled(if: Tab.isThere && !WebLibraries().plots.isEmpty))
    func level_isThatOfTheWholeWeek() throws {
        let receiver = try ReceiverProcess()
        let (day, before) = ("2026-11-21", "2026-11-17")
        try SentAudio.send(receiver, [("d1", 3600, 2), ("d1", 3660, 2)], on: day)
        try SentAudio.send(receiver, [("d1", 36_000, 2), ("d1", 44_400, 2)], on: before)
        let browser = try PageClient(receiver, viewer: "anna")
        for day in [day, before] { _ = try browser.page("/device/d1/\(day)", with: "data-sound") }
        let figure = "document.querySelector('figure[data-sound]')"
        func interval(_ minutes: Int) -> String {
            "\(figure).querySelector('.soft').textContent.includes('each \(minutes) minutes.')"
        }
        try Tab(browser, "/device/d1/\(day)").waitFor("true", of: interval(5))
        let tab = try Tab(browser, "/device/d1/2026-11-15..\(day)")
        try tab.waitFor("true", of: interval(30))
        try tab.waitFor("true", of: "\(figure).querySelectorAll('canvas').length > 0")
        // The 17th is the third of seven days.
        let x = "66 + (width - 66) * 2.6 / 7"
        let move = Tab.pointer(["mousemove"], on: figure, x: x)
        try tab.waitFor(
            "true",
            of:
                "\(move), /2026-11-17 12:.*dBFS/.test(\(figure).querySelector('.hover').textContent)"
        )
        let events = ["mousemove", "mousedown", "mouseup", "click"]
        _ = try tab.ask(Tab.pointer(events, on: figure, x: x))
        try tab.waitFor(#""/device/d1/\#(before)/sound/12""#, of: "location.pathname")
    }
}
