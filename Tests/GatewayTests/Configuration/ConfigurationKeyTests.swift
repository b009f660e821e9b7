// Each key by itself: accepted values, refused values and their messages.
import Audio
import Beacons
import Configuration
import Host
import Queue
import Records
import Testing
import Upload

import Daemon
import Setup

@Suite struct ConfigurationKeyTests {
    /// Key, an accepted value, and its printed form.
    private static let good: [(String, String, String)] = [
        ("device_id", "\"Pi_1.x-2\"", "\"Pi_1.x-2\""),
        ("state_directory", "\"/srv/a b\"", "\"/srv/a b\""),
        ("runtime_directory", "\"/run/x\"", "\"/run/x\""),
        ("schedule_offset", "\"+05:45\"", "\"+05:45\""),
        ("upload.required", "false", "false"),
        (
            "upload.endpoint", "\"HTTPS://a-b.example:8443/x?y=1\"",
            "\"HTTPS://a-b.example:8443/x?y=1\""
        ),
        ("upload.endpoint", "\"http://127.0.0.1:8080/x\"", "\"http://127.0.0.1:8080/x\""),
        ("upload.endpoint", "\"http://[::1]/x\"", "\"http://[::1]/x\""),
        ("upload.endpoint", "\"http://localhost\"", "\"http://localhost\""),
        ("upload.destination", "\"ingest\"", "\"ingest\""),
        ("upload.bucket_url", "\"https://host/b\"", "\"https://host/b\""),
        (
            "upload.bucket_url", "\"http://[::1]:9000/b.x/a_~-/\"",
            "\"http://[::1]:9000/b.x/a_~-/\""
        ),
        ("upload.bucket_url", "\"https://b.host\"", "\"https://b.host\""),
        ("upload.region", "\"eu-west-1\"", "\"eu-west-1\""),
        ("upload.credentials_file", "\"/etc/waypost/s3\"", "\"/etc/waypost/s3\""),
        ("upload.allow_plaintext", "true", "true"),
        ("upload.token_file", "'/a'", "\"/a\""),
        ("upload.ca_file", "\"/b\"", "\"/b\""),
        ("upload.interval", "\"100ms\"", "\"100ms\""),
        ("upload.interval", "\"168h\"", "\"7d\""),
        ("upload.timeout", "\"0.5m\"", "\"30s\""),
        ("upload.max_batch_bytes", "\"1.5MiB\"", "\"1536KiB\""),
        ("upload.max_batch_bytes", "\"1 MB\"", "\"1MB\""),
        ("upload.compression", "\"none\"", "\"none\""),
        ("upload.compression", "\"zstd\"", "\"zstd\""),
        ("upload.format", "\"rows\"", "\"rows\""),
        ("upload.max_rate", "1001", "1001"),
        ("upload.daily_budget", "\"20MB\"", "\"20MB\""),
        ("upload.daily_budget", "100000", "\"100kB\""),
        ("upload.quiet", "\"22:00-06:00\"", "\"22:00-06:00\""),
        ("upload.quiet", "\"00:00-05:30 -05:00\"", "\"00:00-05:30 -05:00\""),
        ("upload.quiet", "\"18:00-24:00 UTC\"", "\"18:00-00:00\""),
        ("upload.max_attempts", "100", "100"),
        ("upload.heartbeat_url", "\"https://h/p?a=1\"", "\"https://h/p?a=1\""),
        ("metrics.textfile", "\"/a/b.prom\"", "\"/a/b.prom\""),
        ("beacons.enabled", "false", "false"),
        ("beacons.source", "\"hci12\"", "\"hci12\""),
        ("beacons.source", "\"btsnoop:/a:b.log\"", "\"btsnoop:/a:b.log\""),
        ("beacons.source", "\"h4:localhost:9000\"", "\"h4:localhost:9000\""),
        ("beacons.replay_speed", "0.5", "0.5"),
        ("beacons.scan", "\"active\"", "\"active\""),
        ("beacons.scan_interval", "\"10.24s\"", "\"10.24s\""),
        ("beacons.scan_window", "\"2.5ms\"", "\"2.5ms\""),
        (
            "beacons.allow", "[\"kind:ruuvi\", \"kind:eddystone*\", \"aa/*\"]",
            "[\"kind:ruuvi\", \"kind:eddystone*\", \"aa/*\"]"
        ),
        ("beacons.deny", "[]", "[]"),
        ("beacons.max_rate", "1000", "1000.0"),
        ("beacons.unknown", "true", "true"),
        (
            "beacons.bindkeys", "{ \"54:48:e6:8f:80:a5\" = \"231D39c1d7cc1ab1aee224cd096db932\" }",
            "{}"
        ),
        ("beacons.schedule", "[\"22:00 .. dawn\"]", "[\"22:00..dawn\"]"),
        ("location.enabled", "false", "false"),
        ("location.gpsd", "\"10.0.0.1:65535\"", "\"10.0.0.1:65535\""),
        ("location.interval", "\"0s\"", "\"0s\""),
        ("location.min_distance", "5", "5.0"),
        ("location.fixed", "\"46.46, -6.84\"", "\"46.46,-6.84\""),
        ("audio.enabled", "false", "false"),
        ("audio.device", "\"hw:0,0,default\"", "\"hw:0,0, default\""),
        ("audio.channel", "2", "2"),
        ("audio.rate", "48000", "48000"),
        ("audio.chunk", "\"4s\"", "\"4s\""),
        ("audio.overlap", "\"15s\"", "\"15s\""),
        ("audio.codec", "\"wav\"", "\"wav\""),
        ("audio.bitrate", "510000", "510000"),
        ("audio.min_level_db", "-0.5", "-0.5"),
        ("audio.silence", "\"ok\"", "\"ok\""),
        ("audio.upload", "\"none\"", "\"none\""),
        ("audio.mark_margin", "\"0s\"", "\"0s\""),
        ("audio.fill_budget", "true", "true"),
        ("audio.schedule", "[\"sunrise-60m .. noon\"]", "[\"sunrise-1h..noon\"]"),
        ("audio.duty", "\"60s/10m\"", "\"1m/10m\""),
        ("site.name", "\"lake meadow\"", "\"lake meadow\""),
        ("site.fields", "{ \"NABat|Grid Cell\" = \"1234\" }", "{}"),
        ("storage.commit_interval", "\"10ms\"", "\"10ms\""),
        ("storage.retention", "\"0s\"", "\"0s\""),
        ("storage.max_size", "\"1000000\"", "\"1MB\""),
        ("storage.max_size", "\"auto\"", "\"auto\""),
        ("storage.warn_free", "\"1GB\"", "\"1GB\""),
        ("storage.critical_free", "0", "0"),
        ("streams.location", "\"A\"", "\"A\""),
        ("streams.audio", "\"a_1\"", "\"a_1\""),
        ("streams.beacons", "\"b-1\"", "\"b-1\""),
        ("streams.events", "\"e\"", "\"e\""),
        ("streams.surveys", "\"s\"", "\"s\""),
        ("streams.health", "\"h\"", "\"h\""),
        ("streams.effort", "\"o\"", "\"o\""),
        ("streams.replies", "\"r\"", "\"r\""),
        ("effort.enabled", "false", "false"),
        ("remote.allow", "[\"operate\", \"upgrade\"]", "[\"operate\", \"upgrade\"]"),
        (
            "remote.key", "\"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\"",
            "\"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\""
        ),
        ("health.enabled", "false", "false"),
        ("health.interval", "\"60s\"", "\"1m\""),
        ("mqtt.url", "\"mqtts://broker.example\"", "\"mqtts://broker.example\""),
        ("mqtt.url", "\"mqtt://[::1]:1884/\"", "\"mqtt://[::1]:1884/\""),
        ("mqtt.allow_plaintext", "true", "true"),
        ("mqtt.username", "\"u v\"", "\"u v\""),
        ("mqtt.password_file", "\"/p\"", "\"/p\""),
        ("mqtt.ca_file", "\"/c\"", "\"/c\""),
        ("mqtt.client_id", "\"a/b\"", "\"a/b\""),
        ("mqtt.publish", "false", "false"),
        ("mqtt.topic", "\"a/<device_id>/b\"", "\"a/<device_id>/b\""),
        ("mqtt.interval", "\"60s\"", "\"1m\""),
        ("mqtt.home_assistant", "false", "false"),
        ("mqtt.discovery_prefix", "\"ha\"", "\"ha\""),
        ("proxy.esphome", "false", "false"),
        ("proxy.key_file", "\"/k\"", "\"/k\""),
        ("proxy.listen", "\"[::1]:6054\"", "\"[::1]:6054\""),
        ("proxy.name", "\"roof-1\"", "\"roof-1\""),
        ("proxy.area", "\"Roof\"", "\"Roof\""),
        ("led.name", "\"mmc0::\"", "\"mmc0::\""),
        ("import.stick", "false", "false"),
        ("log.level", "\"error\"", "\"error\""),
    ]

    @Test(arguments: good)
    func key_takesGoodValue(path: String, value: String, written: String) throws {
        let loaded = try load("\(path) = \(value)")
        let key = try #require(Configuration.table[path])
        #expect(key.written(loaded.values) == written)
        #expect(loaded.origins == [path: .file("w.toml", line: 1)])
    }

    /// Key, a refused value, and the message.
    private static let bad: [(String, String, String)] = [
        ("device_id", "\"a b\"", "\"a b\" is not a valid device id"),
        ("device_id", "\"..\"", "\"..\" begins with a dot, which no server takes"),
        ("device_id", "\".x\"", "\".x\" begins with a dot, which no server takes"),
        ("device_id", "\"\"", "\"\" is not a valid device id"),
        ("device_id", "7", "found the integer 7"),
        ("state_directory", "\"var\"", "is not an absolute path: it must begin with /"),
        ("state_directory", "\"/a\\u0000b\"", "holds a control character"),
        (
            "runtime_directory", "\"/\(String(repeating: "r", count: 90))\"",
            "is longer than 90 bytes"
        ),
        ("schedule_offset", "\"+15:00\"", "\"+15:00\" is not a valid offset from UTC"),
        ("upload.required", "\"yes\"", "found the text \"yes\""),
        ("upload.required", "1", "found the integer 1"),
        ("upload.endpoint", "\"host/api\"", "is not a URL with https:// before the host"),
        ("upload.endpoint", "\"ftp://host/api\"", "is neither an https:// nor an http:// URL"),
        (
            "upload.endpoint", "\"https://u:secret@host/\"",
            "names a user: the token belongs in upload.token_file"
        ),
        ("upload.endpoint", "\"https://host/#a\"", "ends in a #fragment"),
        ("upload.endpoint", "\"https://\"", "does not name a valid host and port"),
        ("upload.endpoint", "\"https:///x\"", "does not name a valid host and port"),
        ("upload.endpoint", "\"https://host:0/\"", "does not name a valid host and port"),
        ("upload.endpoint", "\"https://host:70000/\"", "does not name a valid host and port"),
        ("upload.endpoint", "\"https://[::1/\"", "does not name a valid host and port"),
        ("upload.endpoint", "\"https://a b/\"", "holds a character not allowed in a URL"),
        ("upload.endpoint", "\"https://a\\\\b/\"", "holds a character not allowed in a URL"),
        ("upload.endpoint", "\"https://a/\\r\\nX: y\"", "holds a character not allowed in a URL"),
        ("upload.allow_plaintext", "0.5", "found the number 0.5"),
        ("upload.destination", "\"s4\"", "\"s4\" is not one of them"),
        ("upload.bucket_url", "\"s3://bucket\"", "is neither an https:// nor an http:// URL"),
        (
            "upload.bucket_url", "\"https://id:5ecret@host/b\"",
            "names a user: keys belong in upload.credentials_file"
        ),
        ("upload.bucket_url", "\"https://host/b?x=1\"", "has a ?query; remove it"),
        (
            "upload.bucket_url", "\"https://host/a%20b\"",
            "holds a character in its path other than A-Z a-z 0-9 - . _ ~ /"
        ),
        ("upload.bucket_url", "\"https://host/a//b\"", "has an empty part, . or .. in its path"),
        ("upload.bucket_url", "\"https://host/b/..\"", "has an empty part, . or .. in its path"),
        ("upload.bucket_url", "\"https:///b\"", "does not name a valid host and port"),
        ("upload.region", "\"eu west\"", "\"eu west\" is not a valid region"),
        ("upload.region", "\"\"", "\"\" is not a valid region"),
        (
            "upload.credentials_file", "\"AKIA:5ecret\"",
            "is not an absolute path: it must begin with /"
        ),
        ("upload.token_file", "\"0f52c8secret\"", "is not an absolute path: it must begin with /"),
        ("upload.token_file", "[\"/a\"]", "found an array of texts"),
        ("upload.ca_file", "\"\"", "is empty"),
        ("upload.pinned_public_key", "\"sha256//short=\"", "\"sha256//short=\" is not a valid pin"),
        ("upload.interval", "300", "found the integer 300"),
        ("upload.interval", "\"5 minutes\"", "\"5 minutes\" is not a valid duration"),
        ("upload.interval", "\"-5m\"", "\"-5m\" is not a valid duration"),
        ("upload.interval", "\"8d\"", "8d is out of range"),
        ("upload.interval", "12:30:00", "found a time"),
        ("upload.timeout", "\"999ms\"", "999ms is out of range"),
        ("upload.max_batch_bytes", "\"8 megs\"", "\"8 megs\" is not a valid size"),
        ("upload.max_batch_bytes", "\"0.0001kB\"", "\"0.0001kB\" is not a valid size"),
        ("upload.max_batch_bytes", "-1", "-1 bytes is out of range"),
        ("upload.max_batch_bytes", "8.5", "found the number 8.5"),
        ("upload.compression", "\"brotli\"", "\"brotli\" is not one of them"),
        ("upload.format", "\"columns\"", "\"columns\" is not one of them"),
        ("upload.max_rate", "\"0\"", "0 bytes is out of range"),
        ("upload.daily_budget", "\"99kB\"", "99000 bytes is out of range"),
        ("upload.quiet", "\"at night\"", "\"at night\" is not a valid span of a day"),
        ("upload.quiet", "\"00:00-24:00\"", "\"00:00-24:00\" is not a valid span of a day"),
        ("upload.max_attempts", "0", "0 is out of range"),
        ("upload.heartbeat_url", "\"ftp://h/\"", "is neither an https:// nor an http:// URL"),
        ("metrics.textfile", "\"b.prom\"", "is not an absolute path: it must begin with /"),
        ("upload.max_attempts", "5.0", "found the number 5.0"),
        ("beacons.enabled", "{}", "found a section"),
        ("beacons.source", "\"hci\"", "\"hci\" is not a valid source"),
        ("beacons.source", "\"hci99999\"", "\"hci99999\" is not a valid source"),
        ("beacons.source", "\"btsnoop:\"", "\"btsnoop:\" is not a valid source"),
        ("beacons.source", "\"h4:host\"", "\"h4:host\" is not a valid source"),
        ("beacons.source", "\"ß\"", "\"ß\" is not a valid source"),
        ("beacons.replay_speed", "-1", "-1 is out of range"),
        ("beacons.replay_speed", "nan", "nan is out of range"),
        ("beacons.scan", "\"Passive\"", "\"Passive\" is not one of them"),
        ("beacons.scan_interval", "\"2.4ms\"", "2.4ms is out of range"),
        ("beacons.scan_window", "\"10.25s\"", "10.25s is out of range"),
        ("beacons.allow", "\"aa\"", "found the text \"aa\""),
        ("beacons.allow", "[\"\"]", "\"\" is not a valid pattern"),
        ("beacons.deny", "[\"a\", 1]", "found an array that holds an integer"),
        ("beacons.max_rate", "0", "0 is out of range"),
        ("beacons.max_rate", "inf", "inf is out of range"),
        ("beacons.unknown", "1979-05-27", "found a date"),
        ("beacons.bindkeys", "5", "found an integer"),
        ("beacons.schedule", "\"dawn..dusk\"", "found the text \"dawn..dusk\""),
        ("location.enabled", "\"true\"", "found the text \"true\""),
        ("location.gpsd", "\"localhost\"", "\"localhost\" is not a valid host:port"),
        ("location.gpsd", "\"::1:2947\"", "\"::1:2947\" is not a valid host:port"),
        ("location.gpsd", "\"a:+80\"", "\"a:+80\" is not a valid host:port"),
        ("location.interval", "\"25h\"", "25h is out of range"),
        ("location.min_distance", "\"5m\"", "found the text \"5m\""),
        ("location.fixed", "\"91,0\"", "\"91,0\" is not a valid position"),
        ("audio.enabled", "[]", "found an array of texts"),
        ("site.name", "\"\"", "\"\" is not a valid site name"),
        ("site.name", "\"a\\nb\"", "\"a?b\" is not a valid site name"),
        ("site.fields", "\"a\"", "found a text"),
        ("audio.device", "\"\"", "\"\" holds an empty name"),
        ("audio.device", "\"default,,hw:0\"", "\"default,,hw:0\" holds an empty name"),
        ("audio.device", "\"a b\"", "\"a b\" is not an allowed device name"),
        ("audio.channel", "0", "0 is out of range"),
        ("audio.channel", "\"left\"", "found the text \"left\""),
        ("audio.rate", "7999", "7999 is out of range"),
        ("audio.rate", "11025", "11025 is not a multiple of 50"),
        ("audio.chunk", "\"11m\"", "11m is out of range"),
        ("audio.overlap", "\"30ms\"", "30ms is not a multiple of 20ms"),
        ("audio.codec", "\"mp3\"", "\"mp3\" is not one of them"),
        ("audio.bitrate", "9223372036854775807", "9223372036854775807 is out of range"),
        ("audio.min_level_db", "1", "1 is out of range"),
        ("audio.silence", "\"no\"", "\"no\" is not one of them"),
        ("audio.upload", "\"some\"", "\"some\" is not one of them"),
        ("audio.mark_margin", "\"11m\"", "11m is out of range"),
        ("audio.fill_budget", "1", "found the integer 1"),
        ("audio.schedule", "[\"noon\"]", "\"noon\" is not a window; write it as A..B"),
        ("audio.duty", "\"10m/1m\"", "\"10m/1m\" has no pause; take it out to record all the time"),
        ("storage.commit_interval", "\"2m\"", "2m is out of range"),
        ("storage.retention", "\"3\"", "\"3\" is not a valid duration"),
        ("storage.max_size", "\"2gb\"", "\"2gb\" is not a valid size"),
        ("storage.warn_free", "true", "found true"),
        ("storage.critical_free", "\"\"", "\"\" is not a valid size"),
        ("streams.location", "\"a/b\"", "\"a/b\" is not a valid stream name"),
        ("streams.audio", "\"1a\"", "\"1a\" is not a valid stream name"),
        ("streams.beacons", "\"\"", "\"\" is not a valid stream name"),
        ("streams.events", "\"é\"", "\"é\" is not a valid stream name"),
        ("streams.surveys", "\"a b\"", "\"a b\" is not a valid stream name"),
        ("streams.health", "\"-\"", "\"-\" is not a valid stream name"),
        ("health.enabled", "\"true\"", "found the text \"true\""),
        ("streams.effort", "\"-\"", "\"-\" is not a valid stream name"),
        ("streams.replies", "\"-\"", "\"-\" is not a valid stream name"),
        ("effort.enabled", "1", "found the integer 1"),
        ("remote.allow", "[\"shell\"]", "\"shell\" is not one of them"),
        ("remote.key", "\"RWQ\"", "\"RWQ\" is not a valid public key of minisign"),
        ("health.interval", "\"59s\"", "59s is out of range"),
        ("mqtt.url", "\"https://host\"", "is neither a mqtts:// nor a mqtt:// URL"),
        (
            "mqtt.url", "\"mqtt://u:secret@host\"",
            "names a user: it belongs in mqtt.username, and its password in mqtt.password_file"
        ),
        ("mqtt.url", "\"mqtt://host/path\"", "holds more than a host and a port"),
        ("mqtt.url", "\"host\"", "is not a URL with mqtts:// before the host"),
        ("mqtt.allow_plaintext", "1", "found the integer 1"),
        ("mqtt.username", "\"\"", "\"\" is not a valid user name"),
        ("mqtt.password_file", "\"secret\"", "is not an absolute path: it must begin with /"),
        ("mqtt.ca_file", "\"ca\"", "is not an absolute path: it must begin with /"),
        ("mqtt.client_id", "\"a b\"", "\"a b\" is not a valid client id"),
        ("mqtt.publish", "1", "found the integer 1"),
        ("mqtt.topic", "\"a/+/b\"", "\"a/+/b\" is not such a topic"),
        ("mqtt.topic", "\"a//b\"", "\"a//b\" is not such a topic"),
        ("mqtt.interval", "\"999ms\"", "999ms is out of range"),
        ("mqtt.home_assistant", "1", "found the integer 1"),
        ("mqtt.discovery_prefix", "\"$SYS\"", "\"$SYS\" is not such a topic"),
        ("proxy.esphome", "1", "found the integer 1"),
        ("proxy.key_file", "\"k\"", "is not an absolute path: it must begin with /"),
        ("proxy.listen", "\"host\"", "\"host\" is not a valid host:port"),
        ("proxy.name", "\"-roof\"", "\"-roof\" is not a valid name"),
        ("proxy.area", "\"\"", "\"\" is not a valid area"),
        ("led.name", "\"../x\"", "\"../x\" is not a valid LED name"),
        ("import.stick", "\"no\"", "found the text \"no\""),
        ("log.level", "\"loud\"", "\"loud\" is not one of them"),
    ]

    @Test(arguments: bad)
    func key_refusesBadValue(path: String, value: String, reason: String) throws {
        let key = try #require(Configuration.table[path])
        let expected = "w.toml:1: \(path): \(reason); allowed: \(key.allowed)"
        #expect(problems("\(path) = \(value)") == [expected])
    }

    @Test func everyKey_isTriedWithGoodAndBadValues() {
        let paths = Set(Configuration.table.keys.map(\.path))
        #expect(Set(Self.good.map(\.0)).union(["upload.pinned_public_key"]) == paths)
        #expect(Set(Self.bad.map(\.0)) == paths)
    }

    @Test func pin_takesSeveral() throws {
        let pin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        let loaded = try load("upload.pinned_public_key = \"\(pin);\(pin)\"")
        #expect(loaded.values.upload.pinnedPublicKey == "\(pin);\(pin)")
    }

    @Test func kindPattern_mustNameAKind() {
        #expect(
            problems("beacons.allow = [\"kind:ibeacno\"]") == [
                "w.toml:1: beacons.allow: \"kind:ibeacno\" is not a known kind (ibeacon, altbeacon, "
                    + "eddystone_uid, eddystone_url, eddystone_tlm, eddystone_eid, ruuvi, bthome, "
                    + "manufacturer, service); allowed: an array of addresses, beacon ids or "
                    + "kind:KIND, each with * for any characters"
            ]
        )
    }
}
