// Whole files: all problems at once, each with its place and a helpful message.
import Audio
import Foundation
import Support
import Testing
import Upload

@testable import Configuration
import Daemon
import Setup

@Suite struct ConfigurationProblemTests {
    @Test func allProblems_areReportedAtOnce_inTheOrderOfTheFile() {
        let text = """
            endpoint = "https://a.example"
            [uplod]
            endpoint = "https://a.example"

            [upload]
            intervall = "5m"
            interval = 5
            endpoint = "http://a.example/x"
            [audio]   # trailing blanks do no harm \t
            codec = "mp3"
            chunk = "31s"
            [streams]
            audio = "linux_gpsd_location"
            """
        let environment = ["WAYPOST_AUDIO_RATE": "fast", "WAYPOST_LOG_LEVEL": "loud"]
        #expect(
            problems(text, environment) == [
                "w.toml:1: endpoint: unknown key; did you mean upload.endpoint?",
                "w.toml:2: uplod: unknown section; did you mean upload?",
                "w.toml:6: upload.intervall: unknown key; did you mean upload.interval?",
                "w.toml:7: upload.interval: found the integer 5; allowed: a duration from 100ms to "
                    + "7d (number and unit: ms, s, m, h, d)",
                "w.toml:8: upload.endpoint: http:// would show the token and the data to anyone on "
                    + "the way; allowed: https://, http:// to loopback, or any http:// with "
                    + "upload.allow_plaintext = true",
                "w.toml:10: audio.codec: \"mp3\" is not one of them; allowed: \"opus\", \"flac\", "
                    + "\"aac\", \"wav\"",
                "w.toml:11: audio.chunk: a chunk of 31s is not two or more times the overlap of 2s; "
                    + "allowed: a whole multiple of overlap, at least 4s",
                "w.toml:13: streams.audio: \"linux_gpsd_location\" is the name of streams.location "
                    + "and of streams.audio; allowed: a name for each stream alone",
                "WAYPOST_AUDIO_RATE: found the text \"fast\"; allowed: a whole number from 8000 to "
                    + "384000 Hz, a multiple of 50",
                "WAYPOST_LOG_LEVEL: \"loud\" is not one of them; allowed: \"error\", \"warning\", "
                    + "\"info\", \"debug\"",
            ]
        )
    }

    @Test func errors_describeOneProblemALine() {
        let errors = ConfigurationErrors([
            ConfigurationProblem(place: "f:1", key: "a", message: "x", allowed: "y"),
            ConfigurationProblem(place: "f", message: "z"),
        ])
        #expect(errors.description == "f:1: a: x; allowed: y\nf: z")
    }

    @Test func crlfAndByteOrderMark_keepTheLineNumbers() throws {
        let text =
            "\u{FEFF}device_id = \"x\"  \r\n\r\n[upload]\t\r\ninterval = \"1m\"\r\ntimeout = 1\r\n"
        #expect(
            problems(text) == [
                "w.toml:5: upload.timeout: found the integer 1; allowed: a duration from 1s to 1h "
                    + "(number and unit: ms, s, m, h, d)"
            ]
        )
        let right = try load(text.replacingOccurrences(of: "timeout = 1", with: "timeout = '2s'"))
        #expect(right.values.deviceID == "x")
        #expect(right.values.upload.timeout == .seconds(2))
        #expect(right.origins["upload.timeout"] == .file("w.toml", line: 5))
    }

    @Test func wholeDefault_isReadWithCRLFAndByteOrderMark() throws {
        let text =
            "\u{FEFF}" + Configuration.defaultText.replacingOccurrences(of: "\n", with: "\r\n")
        #expect(try load(text).values == Configuration())
    }

    @Test(arguments: [
        ("a = 1\n[upload\n", "w.toml:2:", ""),
        ("\ndevice_id = \"x\n", "w.toml:2:", ""),
        ("a = 1\na = 2", "w.toml:2:", ""),
        (
            "[upload]\nendpoint = https://a.example", "w.toml:2:",
            " (put text in double quotes)"
        ),
        ("[upload]\ninterval = 5m", "w.toml:2:", " (put text in double quotes)"),
        ("a\u{0} = 1", "w.toml:1:", ""),
    ])
    func syntaxError_namesLineAndColumn(text: String, place: String, hint: String) throws {
        let found = problems(text)
        let problem = try #require(found.first)
        #expect(found.count == 1)
        #expect(problem.hasPrefix(place))
        #expect(problem.contains(": not valid TOML: "))
        #expect(Int(problem.dropFirst(place.count).prefix { $0 != ":" }) != nil)
        #expect(problem.hasSuffix(hint))
    }

    @Test func usualMistakes_areExplained_allAtOnce() {
        let text = """
            # “quoted”
            device_id = “x”
            [upload]
            required = True # not “this”
            region = "it is “right” here"
            interval = 5m
            """
        #expect(
            problems(text) == [
                "w.toml:2: holds curly quotes; write straight ones: \"",
                "w.toml:4: True is not a value; write true, in lower case",
            ]
        )
    }

    /// A block of the manual, pasted below a file that has these tables already.
    @Test func repeatedTable_namesTheLineOfTheFirst_allAtOnce() {
        let text = """
            device_id = "a"
            [beacons]  # as packaged
            enabled = true
            [location]

            [ beacons ]
            enabled = false
            [audio]
            enabled = true
            [location]
            """
        let what = "redefines the table that begins in line"
        #expect(
            problems(text) == [
                "w.toml:6: [beacons] \(what) 2; write the keys there",
                "w.toml:10: [location] \(what) 4; write the keys there",
            ]
        )
    }

    @Test func brokenUTF8_isASyntaxError() throws {
        let bytes: [UInt8] = [0x61, 0x3D, 0x22, 0xC3, 0x28, 0x22]
        #expect(throws: ConfigurationErrors.self) {
            try Configuration.check(bytes, file: "w.toml", environment: [:])
        }
    }

    @Test func utf16_isNamed() {
        #expect(
            throws: ConfigurationErrors([
                ConfigurationProblem(
                    place: "w.toml",
                    message: "is saved as UTF-16; save it as UTF-8"
                )
            ])
        ) {
            try Configuration.check([0xFF, 0xFE, 0x61, 0x00], file: "w.toml", environment: [:])
        }
    }

    @Test func hugeFile_isRefused_andADeepOneDoesNoHarm() {
        let huge = String(repeating: "#", count: 65_537)
        #expect(problems(huge) == ["w.toml: is larger than 64 KiB"])
        let deep = String(repeating: "a.", count: 32_000) + "a = 1"
        #expect(problems(deep) == ["w.toml:1: a: unknown section"])
        let nested = "a = " + String(repeating: "[", count: 32_000)
        #expect(problems(nested).count == 1)
    }

    @Test func missingFile_isNamed_andHowToMakeOne() throws {
        let scratch = TemporaryFolder()
        let path = "\(scratch.path)/none.toml"
        #expect(
            throws: ConfigurationErrors([
                ConfigurationProblem(
                    place: path,
                    message: "the file does not exist; `waypost config default > \(path)` makes one"
                )
            ])
        ) {
            try Configuration.load(path: path, environment: [:])
        }
    }

    @Test func unreadableFile_isNamedWithTheReason() throws {
        let scratch = TemporaryFolder()
        #expect(
            throws: ConfigurationErrors([
                ConfigurationProblem(
                    place: scratch.path,
                    message: "cannot be read: Is a directory"
                )
            ])
        ) {
            try Configuration.load(path: scratch.path, environment: [:])
        }
    }

    /// Keys of encrypted sensors are secrets; a file without one may be readable by all.
    @Test(arguments: [
        (0o644, true, true), (0o640, true, false), (0o600, true, false), (0o644, false, false),
    ])
    func fileWithKeysThatAllMayRead_isWarnedOf(mode: Int, hasKeys: Bool, warns: Bool) throws {
        let scratch = TemporaryFolder()
        let key = "000102030405060708090a0b0c0d0e0f"
        let text = hasKeys ? "[beacons.bindkeys]\n\"00:00:00:00:00:01\" = \"\(key)\"\n" : ""
        let path = try scratch.write(text, to: "w.toml", mode: mode)
        let loaded = try Configuration.load(path: path, environment: [:])
        let reported = loaded.warnings.filter { $0.message.contains("every user may read it") }
        #expect(reported.count == (warns ? 1 : 0))
        #expect(reported.allSatisfy { $0.message.contains("chmod 640 \(path)") })
        #expect(!"\(loaded.warnings)".contains(key))
        let variable = ["WAYPOST_BEACONS_BINDKEYS": "00:00:00:00:00:02=\(key)"]
        let other = try Configuration.load(path: path, environment: variable)
        #expect(!"\(other.warnings)".contains("every user may read it"))
    }

    @Test func file_isReadFromDisk() throws {
        let scratch = TemporaryFolder()
        let path = try scratch.write("\n[audio]\nrate = 48000\n", to: "w.toml", mode: 0o644)
        let loaded = try Configuration.load(path: path, environment: [:])
        #expect(loaded.values.audio.rate == 48_000)
        #expect(loaded.origins == ["audio.rate": .file(path, line: 3)])
    }

    @Test(arguments: [
        ("audio = 5", "w.toml:1: audio: found an integer; allowed: a section"),
        (
            "[[upload]]\na = 1",
            "w.toml:1: upload: found an array that holds a section; allowed: a section"
        ),
        (
            "upload.endpoint.host = \"a\"",
            "w.toml:1: upload.endpoint: found a section; allowed: a URL such as https://host/api/ingest"
        ),
        (
            "\"upload.endpoint\" = \"a\"",
            "w.toml:1: \"upload.endpoint\": unknown key; did you mean upload.endpoint?"
        ),
        (
            "[upload]\ndevice_id = \"a\"",
            "w.toml:2: upload.device_id: unknown key; did you mean device_id?"
        ),
        ("[upload]\ntoken = \"5ecret\"", "w.toml:2: upload.token: unknown key"),
        (
            "[upload]\ntokenfile = \"5ecret\"",
            "w.toml:2: upload.tokenfile: unknown key; did you mean upload.token_file?"
        ),
        ("[upload.more]\na = 1", "w.toml:1: upload.more: unknown section"),
        ("[log]\nlevle = \"info\"", "w.toml:2: log.levle: unknown key; did you mean log.level?"),
        ("\"a\\nb\\u202e\" = 1", "w.toml:1: \"a?b?\": unknown key"),
        ("zzzz = 1", "w.toml:1: zzzz: unknown key"),
    ])
    func wrongPlace_isNamedOnce(text: String, problem: String) {
        #expect(problems(text) == [problem])
    }

    @Test(arguments: [
        ("", "", 0), ("a", "", 1), ("interval", "intervall", 1), ("scan", "sacn", 1),
        ("kitten", "sitting", 3), ("codec", "codec", 0),
    ])
    func editDistance_countsSteps(left: String, right: String, steps: Int) {
        #expect(editDistance(left, right) == steps)
        #expect(editDistance(right, left) == steps)
    }
}
