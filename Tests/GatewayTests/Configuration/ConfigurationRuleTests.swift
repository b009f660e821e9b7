// Rules over several keys, and warnings about values that are accepted.
import Audio
import Configuration
import Testing
import Upload

import Daemon
import Setup

@Suite struct ConfigurationRuleTests {
    @Test(arguments: [
        "[beacons]\nscan_window = \"200ms\"", "[audio]\noverlap = \"4s\"", "[audio]\nrate = 44100",
        "[audio]\noverlap = \"0s\"\nchunk = \"5s\"", "[audio]\nchunk = \"2s\"",
        "[audio]\ncodec = \"aac\"\nbitrate = 15999", "[audio]\ncodec = \"aac\"\nbitrate = 96001",
        "[audio]\nrate = 48000\ncodec = \"aac\"\nbitrate = 160001",
        "[audio]\ncodec = \"aac\"\nrate = 12050",
        "[audio]\ncodec = \"aac\"\nchunk = \"1200ms\"\noverlap = \"60ms\"",
        "[storage]\nwarn_free = \"10MB\"", "[storage]\ncritical_free = \"1GB\"",
        "[streams]\nlocation = \"waypost_surveys\"", "[streams]\nlocation = \"waypost_events\"",
        "[upload]\nendpoint = \"http://127.0.0.1.example.com/\"",
        "[upload]\nendpoint = \"http://127.1/\"", "[upload]\nendpoint = \"http://[::2]/\"",
        "[upload]\nendpoint = \"http://localhost.example/\"",
        "[upload]\nbucket_url = \"http://store.example/b\"", "[upload]\ndestination = \"s3\"",
    ])
    func rule_isBrokenAtTheKeyThatWasSet(text: String) throws {
        let found = problems(text)
        #expect(found.count == 1)
        let line = text.split(separator: "\n").count
        #expect(try #require(found.first).hasPrefix("w.toml:\(line): "))
    }

    @Test(arguments: [
        "[beacons]\nscan_window = \"100ms\"", "[audio]\nchunk = \"4s\"",
        "[audio]\noverlap = \"0s\"\nchunk = \"4s\"", "[audio]\noverlap = \"1.5s\"",
        "[audio]\nrate = 44100\ncodec = \"wav\"", "[audio]\nrate = 44100\ncodec = \"flac\"",
        "[audio]\nrate = 44100\ncodec = \"aac\"\nbitrate = 160000",
        "[audio]\ncodec = \"aac\"\nbitrate = 16000", "[audio]\ncodec = \"aac\"\nbitrate = 96000",
        "[audio]\ncodec = \"aac\"\nchunk = \"1600ms\"\noverlap = \"80ms\"",
        "[storage]\nwarn_free = \"50MB\"",
        "[upload]\nendpoint = \"http://127.255.0.1:80/\"",
        "[upload]\ndestination = \"s3\"\nbucket_url = \"http://127.0.0.1:9000/b\"",
        "[upload]\ndestination = \"s3\"\nbucket_url = \"https://b.store.example/\"",
        "[upload]\nendpoint = \"http://example.org/\"\nallow_plaintext = true",
        "[streams]\nlocation = \"waypost_events\"\nevents = \"linux_gpsd_location\"",
    ])
    func rule_holdsAtItsEdge(text: String) {
        #expect(problems(text) == [])
    }

    @Test func ruleTexts_sayBothValues() {
        #expect(
            problems(
                """
                [beacons]
                scan_window = "200ms"
                [audio]
                rate = 44100
                overlap = "0s"
                chunk = "5s"
                [storage]
                warn_free = "10MB"
                """
            ) == [
                "w.toml:2: beacons.scan_window: the window of 200ms is longer than the interval of "
                    + "100ms; allowed: scan_window up to scan_interval",
                "w.toml:4: audio.rate: opus cannot encode 44100 Hz; allowed: 8000, 12000, 16000, "
                    + "24000, 48000",
                "w.toml:6: audio.chunk: a chunk of 5s is not two or more times 2s; allowed: a whole "
                    + "multiple of 2s, which overlap 0s needs, at least 4s",
                "w.toml:8: storage.warn_free: critical_free of 50MB is more than warn_free of 10MB; "
                    + "allowed: critical_free up to warn_free",
            ]
        )
    }

    @Test func bucketThatIsMissing_isNamedAtTheDestination() {
        #expect(
            problems("[upload]\ndestination = \"s3\"") == [
                "w.toml:2: upload.destination: s3 needs upload.bucket_url, which is not set; allowed: "
                    + "ingest, or s3 with a bucket_url"
            ]
        )
    }

    @Test func ruleIsNotChecked_whereAValueWasRefused() {
        #expect(problems("[audio]\nchunk = \"5s\"\noverlap = \"x\"").count == 1)
    }

    @Test(arguments: [
        ("100kB", "interval = \"1m\"", "is 100kB, and uploads every 1m cost 2.2 MB per day"),
        ("200kB", "interval = \"1h\"", "a record of sound is up to 90.0 kB: it may find no room"),
        ("3MB", "interval = \"1h\"\n[audio]\ncodec = \"wav\"", "sound is up to 960.0 kB"),
        ("200kB", "interval = \"1h\"\n[audio]\nenabled = false", ""), ("20MB", "", ""),
    ])
    func budgetThatWillNotDo_isAWarning(budget: String, more: String, message: String) throws {
        let text =
            "[upload]\nendpoint = \"https://a.example/\"\ndaily_budget = \"\(budget)\"\n\(more)"
        let warnings = try load(text).warnings.map(\.message)
        #expect(warnings.count == (message.isEmpty ? 0 : 1))
        #expect(warnings.allSatisfy { $0.contains(message) }, "\(warnings)")
    }

    /// `waypost-receiver` refuses a larger body (413), and a record cannot be divided.
    @Test(arguments: [
        (
            #"codec = "wav"\nrate = 384000\nchunk = "30s"\noverlap = "0s""#,
            "lower audio.chunk to 16s"
        ),
        (#"codec = "flac"\nrate = 48000\nchunk = "10m""#, "lower audio.chunk to 130s"),
        (#"codec = "wav"\nrate = 384000\nchunk = "2m"\noverlap = "1m""#, "lower audio.rate"),
        ("", nil), (#"codec = "flac"\nrate = 48000\nchunk = "1m""#, nil),
        (#"codec = "wav"\nrate = 384000\nchunk = "10s"\noverlap = "0s""#, nil),
        (#"chunk = "10m"\nbitrate = 64000"#, nil),
    ])
    func recordOfSound_largerThanABody_isAWarning(audio: String, remedy: String?) throws {
        let lines = audio.replacing("\\n", with: "\n")
        let text = "upload.endpoint = \"https://a.example/\"\n[audio]\n\(lines)"
        let reported = try load(text).warnings.map(\.message)
        #expect(reported.count == (remedy == nil ? 0 : 1))
        for warning in reported {
            #expect(warning.contains("takes 16MiB by default; \(remedy ?? "")"), "\(reported)")
        }
        let bucket = "upload.destination = \"s3\"\nupload.bucket_url = \"https://a.example/b\""
        #expect(try load("\(bucket)\n[audio]\n\(lines)").warnings == [])
        // The server may say anything.
        let values = try load(text).values
        for limit in [Int64.min, -1, 0, 1, 1 << 40, .max] { _ = values.sizeAdvice(limit) }
        #expect(values.sizeAdvice(.max) == nil && values.sizeAdvice(1)?.next.isEmpty == false)
    }

    @Test func withoutEndpoint_aWarningSaysWhatWillNotHappen() throws {
        #expect(
            try load("").warnings.map(\.description) == [
                "w.toml: upload.endpoint is not set: nothing is uploaded and nothing collected; "
                    + "set it, or upload.required = false"
            ]
        )
        #expect(
            try load("upload.required = false").warnings.map(\.description) == [
                "w.toml: upload.endpoint is not set: nothing is uploaded"
            ]
        )
        #expect(try load("upload.endpoint = \"https://a.example/\"").warnings == [])
        let bucket = "upload.destination = \"s3\"\nupload.bucket_url = \"https://a.example/b\""
        #expect(try load(bucket).warnings == [])
    }
}
