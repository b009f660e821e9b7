// Windows, duty cycles and offsets: accepted texts, and the messages for all others.
import Configuration
import Host
import Testing

@testable import Schedule

func windows(_ texts: String...) -> [ScheduleWindow] {
    texts.map {
        do { return try ScheduleWindow.parse($0).get() } catch { fatalError("\($0): \(error)") }
    }
}

private func problem<Value>(_ result: Result<Value, MismatchError>) -> String? {
    if case .failure(let mismatch) = result { mismatch.message } else { nil }
}

@Suite struct WindowTests {
    @Test(arguments: [
        "06:00..08:30", "22:00..04:00", "00:00..24:00", "sunrise..sunset", "sunrise-1h..sunrise+3h",
        "dusk+30m..dawn-30m", "noon..24:00", "sunset-12h..23:59", "noon-1.5s..noon",
        "sunset-4h..sunrise+4h", "sunrise+5h..sunset-5h", "noon..noon-1m",
    ])
    func window_isParsedAndWritten(text: String) throws {
        #expect(try ScheduleWindow.parse(text).get().text == text)
    }

    @Test func blanksAndZeroOffsets_areIgnored() throws {
        #expect(
            try ScheduleWindow.parse(" sunrise - 60m .. sunset+0s ").get().text
                == "sunrise-1h..sunset"
        )
    }

    static let wrong: [String: String] = [
        "": "is not a window", "06:00": "is not a window", "06:00-08:00": "is not a window",
        "6:00..08:00": "\"6:00\" is not a time; write HH:MM",
        "06:00..25:00": "\"25:00\" is not a time", "06:60..08:00": "\"06:60\" is not a time",
        "24:01..08:00": "is not a time", "24:00..08:00": "begins at 24:00; write 00:00",
        "06:00+1h..08:00": "is not a time", "06:00..08:00..09:00": "is not a time",
        "sunrize..10:00": "\"sunrize\" is not an event of the sun; did you mean sunrise?",
        "..10:00": "\"\" is not an event", "06:00..": "\"\" is not an event",
        "sunrise+..10:00": "\"+\" is not an offset; write it as -30m or +1h",
        "sunrise+1..10:00": "\"+1\" is not an offset", "sunrise+-1h..noon": "is not an offset",
        "sunrise-13h..10:00": "\"-13h\" is more than 12h",
        "sunrise+9999999999d..noon": "is not an offset", "sunrise+1m1..noon": "is not an offset",
        "06:00..06:00": "begins and ends at the same time",
        "sunrise+60m..sunrise+1h": "begins and ends at the same time",
        // Closed all day, and open all day.
        "sunrise+8h..noon": "has an offset beyond its other end; write one end as HH:MM",
        "noon-8h..sunrise": "has an offset beyond its other end",
        "６:00..08:00": "is not", "06:00\u{301}..08:00": "is not",
        "\u{1B}[31m..noon": "is not an event of the sun",
    ]

    @Test(arguments: wrong.keys.sorted())
    func wrongWindow_saysWhich(text: String) throws {
        let message = try #require(problem(ScheduleWindow.parse(text)))
        #expect(message.contains(Self.wrong[text] ?? "?"), "\(message)")
        #expect(!message.contains("\u{1B}"))
    }

    @Test func longText_isRefused() {
        let long = String(repeating: "sunrise", count: 10_000)
        #expect(
            problem(ScheduleWindow.parse(long + ".." + long)).map { $0.utf8.count < 200 } == true
        )
    }

    @Test func duty_isParsedAndWritten() throws {
        #expect(try DutyCycle.parse("1m/10m").get().text == "1m/10m")
        #expect(try DutyCycle.parse("60 s / 10m").get().text == "1m/10m")
        #expect(try DutyCycle.parse("90s/24h").get().text == "90s/1d")
        for (text, message) in [
            ("1m", "write it as 1m/10m"), ("1m/10m/1h", "write it as"), ("/", "write it as"),
            ("10m/1m", "has no pause"), ("10m/10m", "has no pause"), ("0s/1m", "out of range"),
            ("500ms/1m", "out of range"), ("1h/25h", "out of range"),
        ] {
            #expect(problem(DutyCycle.parse(text))?.contains(message) == true, "\(text)")
        }
    }

    @Test func offset_isParsedAndWritten() {
        for text in ["UTC", "+02:00", "-03:30", "+14:00"] {
            #expect(minutes(ofOffset: text).map(offsetText) == text)
        }
        for text in ["", "+2", "02:00", "+15:00", "+02:60", "Z", "+0200"] {
            #expect(minutes(ofOffset: text) == nil, "\(text)")
        }
    }
}
