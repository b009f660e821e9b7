import Host
import Testing

@testable import Remote

@Suite struct JobListTests {
    private func list(_ jobs: String, tag: String = "\"t\"") throws -> JobList {
        try JobList(Array("{\"tag\": \(tag), \"jobs\": [\(jobs)]}".utf8))
    }

    @Test func kinds_areReadWithTheirParameters() throws {
        let jobs = try list(
            """
            {"id": "1", "kind": "report", "until": "2026-12-01T00:00:00Z"}, {"id": "2", "kind": "sync"},
            {"id": "3", "kind": "restart", "source": "audio"},
            {"id": "4", "kind": "resend", "stream": "s", "since": "2026-11-20T00:00:00Z",
             "until": "2026-11-21T00:00:00Z", "more": {"a": [1]}}
            """
        ).jobs
        let day = WallTime(milliseconds: 1_795_132_800_000)
        #expect(
            jobs.map(\.action) == [
                .report, .sync, .restart(source: "audio"),
                .resend(stream: "s", since: day, until: day + .seconds(86_400)),
            ]
        )
        // The end of a resend's span is not the end of the job.
        #expect(jobs.map { $0.expires?.rfc3339.prefix(10) } == ["2026-12-01", nil, nil, nil])
    }

    @Test(arguments: [
        #"{"id": "1", "kind": "settings"}"#, #"{"id": "1"}"#, #"{"id": "1", "kind": 7}"#,
        #"{"id": "1", "kind": "restart"}"#, #"{"id": "1", "kind": "restart", "source": ["audio"]}"#,
        #"{"id": "1", "kind": "resend"}"#, #"{"id": "1", "kind": "report", "until": "tomorrow"}"#,
        #"{"id": "1", "kind": "sync", "until": 7}"#,
        #"{"id": "1", "kind": "resend", "since": "2026-11-20T00:00:00Z", "until": "2026-11-19T00:00:00Z"}"#,
        #"{"id": "1", "kind": "resend", "since": "2026-11-20T00:00:00Z", "stream": 7}"#,
        #"{"id": "1", "kind": "\u0000\u001b[2J"}"#,
    ])
    func malformedJob_isRefusedByItself(_ job: String) throws {
        let jobs = try list("\(job), {\"id\": \"2\", \"kind\": \"sync\"}").jobs
        guard case .invalid(let why) = jobs[0].action else {
            Issue.record("\(jobs[0].action)")
            return
        }
        #expect(why.utf8.count < 300 && !why.unicodeScalars.contains(where: \.isInvisible))
        #expect(jobs[1].action == .sync)
    }

    @Test(arguments: [
        "", "[]", "null", "{}", #"{"tag": "t"}"#, #"{"jobs": []}"#, #"{"tag": 7, "jobs": []}"#,
        #"{"tag": "", "jobs": []}"#, #"{"tag": "a\nb", "jobs": []}"#, #"{"tag": "t", "jobs": {}}"#,
        #"{"tag": "t", "jobs": [7]}"#, #"{"tag": "t", "jobs": [{"kind": "sync"}]}"#,
        #"{"tag": "t", "jobs": [{"id": "", "kind": "sync"}]}"#,
        #"{"tag": "t", "jobs": [{"id": "a\u0007", "kind": "sync"}]}"#,
        #"{"tag": "t", "jobs": [{"id": "\u0301x", "kind": "sync"}]}"#,
        #"{"tag": "t", "jobs": []"#, "<html></html>",
        String(repeating: "[", count: 10_000),
    ])
    func malformedList_isRefusedAsAWhole(_ text: String) {
        #expect(throws: Failure.self) { try JobList(Array(text.utf8)) }
    }

    @Test func list_hasLimits() throws {
        let job = #"{"id": "1", "kind": "sync"}"#
        let most = Array(repeating: job, count: JobList.maxJobs)
        #expect(try list(most.joined(separator: ",")).jobs.count == 64)
        #expect(throws: Failure.self) { try list((most + [job]).joined(separator: ",")) }
        let long = String(repeating: " ", count: JobList.maxBytes)
        #expect(throws: Failure.self) { try list(long + job) }
        let id = String(repeating: "é", count: 65)
        #expect(throws: Failure.self) { try list(#"{"id": "\#(id)", "kind": "sync"}"#) }
        #expect(throws: Failure.self) { try list("", tag: "\"\(id)\"") }
    }
}
