// The metrics that Prometheus reads.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct MetricsTests {
    /// Reads metrics as Prometheus does, and prints a line per sample.
    private static let parser = """
        import sys, urllib.request
        from prometheus_client.parser import text_string_to_metric_families
        with urllib.request.urlopen(sys.argv[1]) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
            text = answer.read().decode()
        for family in text_string_to_metric_families(text):
            assert family.documentation and family.type in ("counter", "gauge"), family.name
            assert (family.type == "counter") == any(s.name.endswith("_total") for s in family.samples), family.name
            for sample in family.samples:
                labels = ",".join("%s=%s" % pair for pair in sample.labels.items())
                print("%s{%s}" % (sample.name.removeprefix("waypost_receiver_"), labels), sample.value)
        """

    private func samples(_ place: String) throws -> [String: Double] {
        let url = "http://\(place)/metrics"
        let outcome = try Process.run("/usr/bin/python3", ["-c", Self.parser, url])
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.output.split(separator: "\n").reduce(into: [:]) { samples, line in
            let words = line.split(separator: " ")
            samples[words.dropLast().joined(separator: " ")] = Double(words.last ?? "")
        }
    }

    @Test func figures_areWhatTheServerHas() throws {
        // All of 127.0.0.0/8 is this machine: an address of its own, so that the port is free.
        let place = "127.\(Int.random(in: 1...254)).\(Int.random(in: 1...254)).7:9101"
        let receiver = try ReceiverProcess(["--metrics", place])
        let before = try samples(place)
        #expect(before["records_total{}"] == 0 && before["refusals_total{status=401}"] == 0)
        #expect(before["last_batch_timestamp_seconds{}"] == nil)
        let token = try receiver.enrol("d1")
        #expect(try receiver.send(token, ids: ["a", "b"]) == 200)
        #expect(try receiver.send("wrong", ids: ["c"]) == 401)
        try waitUntil("the index") { try samples(place)["index_lag_seconds{}"] == 0 }
        let after = try samples(place)
        #expect(after["records_total{}"] == 2 && after["batches_total{}"] == 1)
        #expect(after["received_bytes_total{}"] ?? 0 > 100)
        #expect(after["refusals_total{status=401}"] == 1)
        #expect(after["devices{state=healthy}"] == 1 && after["devices{state=late}"] == 0)
        let age = Date().timeIntervalSince1970 - (after["last_batch_timestamp_seconds{}"] ?? 0)
        #expect(age < 3600)
        #expect(after["free_bytes{}"] ?? 0 > 0)
        #expect(after["index_unreadable_files{}"] == 0)
        #expect(after["build_info{version=0.1.0}"] == 1)
        // Not on the address that a proxy passes on.
        let outside = try receiver.request("GET /metrics HTTP/1.1\r\nHost: r\r\n\r\n")
        #expect(outside.status == 404)
        #expect(receiver.terminate() == 0)
    }

    @Test(arguments: ["0.0.0.0:9101", "192.0.2.1:9101", "9101", "[::1]:9101"] as [String])
    func addressesThatOthersReach_areRefused(_ address: String) throws {
        let outcome = try Process.run(
            Tree.program("waypost-receiver"),
            ["serve", "--metrics", address, "--data", "/nonexistent/data"]
        )
        #expect(outcome.status == 64 && outcome.error.contains("loopback"))
    }
}
