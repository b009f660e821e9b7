// The alert channels: a real program, a real server that misbehaves, the whole receiver.
import Foundation
import Host
import ReceiverSupport
import Support
import Testing

@testable import ServerExports
@testable import ServerWeb

@Suite struct AlertChannelTests {
    private let folder = TemporaryFolder()

    /// Writes a script through another process: a file open for writing here could not be executed.
    private func program(_ name: String, _ lines: String) throws -> String {
        let path = "\(folder.path)/\(name)"
        let write = ["-c", "cat > \"$1\" && chmod 700 \"$1\"", "sh", path]
        #expect(try Process.run("/bin/sh", write, input: "#!/bin/sh\n\(lines)\n").status == 0)
        return path
    }

    private static let evil = #"$(touch /tmp/owned) `id` "'; rm -rf / & \#n\#u{1b}[31m €"#

    private func alert(_ reason: String = evil) -> Alert {
        let state = DeviceState(id: "d1", lastSeen: 1_800_000_000_000)
        return Alert(.critical, state, because: reason, at: 1_800_000_060_000)
    }

    private func failure(_ command: AlertCommand, until stop: StopSignal) -> String {
        do { try command.run(alert(), "{}", until: stop) } catch { return "\(error)" }
        return ""
    }

    // MARK: A program

    @Test func program_getsItsFactsAsTheyAre() throws {
        let path = try program(
            "tell",
            """
            printf '%s\\n' "$WAYPOST_ALERT" "$WAYPOST_DEVICE" "$WAYPOST_REASON" "$WAYPOST_AT" "$#" > "$0.facts"
            cat > "$0.json"
            """
        )
        let alert = self.alert()
        try AlertCommand(path: path).run(alert, alert.json, until: try StopSignal())
        let facts = try folder.read("tell.facts").split(separator: "\n").map(String.init)
        #expect(facts == ["critical", "d1", alert.reason, "2027-01-15T08:01:00.000Z", "0"])
        #expect(alert.reason.contains("$(touch /tmp/owned) `id` \"'; rm -rf / & ??[31m €"))
        #expect(try Alert(json: folder.read("tell.json")) == alert)
        let json = try JSONSerialization.jsonObject(with: Data(folder.read("tell.json").utf8))
        let members = try #require(json as? [String: Any])
        #expect(members["device_id"] as? String == "d1")
        #expect(members["last_seen"] as? String == "2027-01-15T08:00:00.000Z")
        #expect(members["alert_id"] as? String == "d1-critical-1800000060000")
    }

    @Test func programThatFails_saysHow() throws {
        let stop = try StopSignal()
        for (lines, words) in [("exit 3", "exit status 3"), ("kill -9 $$", "signal 9 (Killed)")] {
            let path = try program("fail-\(words.filter(\.isNumber))", lines)
            #expect(failure(AlertCommand(path: path), until: stop) == "\(path): \(words)")
        }
        let none = failure(AlertCommand(path: "/none"), until: stop)
        #expect(none == "/none: No such file or directory")
    }

    @Test func programThatHangs_isKilled() throws {
        let path = try program("hang", "exec sleep 1000")
        let command = AlertCommand(path: path, limit: .milliseconds(100))
        #expect(failure(command, until: try StopSignal()).contains("killed after"))
    }

    @Test func stop_endsAProgram_andWhatItStarted() throws {
        let path = try program("hang", "sleep 1000 & echo $! > \"$0.pid\"; wait")
        let stop = try StopSignal()
        let ended = Locked(false)
        let alert = self.alert()
        try OwnThread("test") {
            try? AlertCommand(path: path).run(alert, "{}", until: stop)
            ended.update { $0 = true }
        }.detach()
        try waitUntil("a program") { (try? folder.read("hang.pid").hasSuffix("\n")) == true }
        let child = try folder.read("hang.pid").trimmingCharacters(in: .newlines)
        // A survivor would keep this test's output open.
        defer { pid_t(child).map { _ = kill($0, SIGKILL) } }
        stop.raise()
        try waitUntil("its end") { ended.value }
        try waitUntil("the end of what it started") {
            // A process not yet reaped is a zombie.
            (try? String(contentsOfFile: "/proc/\(child)/stat", encoding: .utf8))?
                .contains(") Z") ?? true
        }
    }

    // MARK: A server

    /// A server that fails each request differently, the last with 200 and an endless body.
    private static let server = """
        import json, os, socket, sys, threading
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        answers = [b"", b"HTTP/1.1 500 No\\r\\nContent-Length: 2\\r\\n\\r\\nno", b"\\0\\0\\0garbage\\r\\n\\r\\n",
            b"HTTP/1.1 302 Found\\r\\nLocation: /other\\r\\nContent-Length: 0\\r\\n\\r\\n", b"HTTP/1.1 2",
            b"HTTP/1.1 404 No\\r\\nContent-Length: 1000000\\r\\n\\r\\nshort", None,
            b"HTTP/1.1 200 OK\\r\\nContent-Length: 1000000\\r\\n\\r\\nshort"]
        held = []
        for number in range(1000):
            client, _ = listener.accept()
            stream = client.makefile("rb")
            first, length = stream.readline().decode(), 0
            while (line := stream.readline().strip()) != b"":
                name, _, value = line.decode().partition(":")
                length = int(value) if name.lower() == "content-length" else length
            answer = answers[min(number, len(answers) - 1)]
            with open(sys.argv[1], "ab") as log:
                log.write(first.split()[1].encode() + b" " + stream.read(length) + b"\\n")
            if answer is None:
                held.append((client, stream))
            else:
                client.sendall(answer)
                stream.close()
                client.close()
        """

    @Test func misbehavingServer_getsAlert_untilItConfirms() throws {
        let log = "\(folder.path)/log"
        let server = try StubServer(Self.server, log)
        defer { server.stop() }
        let clock = ManualClock(
            Stamp(
                boot: BootInstant(nanoseconds: 0),
                wall: WallTime(milliseconds: 1_800_000_000_000)
            )
        )
        let isLate = Locked(false)
        let (url, failures) = ("http://127.0.0.1:\(server.port)/hook?a=b", Locked([String]()))
        let channel = AlertChannel(name: "url") { _, json, stop in
            try WebPost.send(json, to: url, userAgent: "test", limit: .seconds(10), until: stop)
        }
        let desk = try AlertController(
            directory: folder.path,
            channels: [channel],
            clock: clock,
            look: {
                let late = isLate.value ? ["silent"] : []
                return ([DeviceState(id: "d1", lastSeen: $0 - 1, late: late)], true)
            },
            log: { line in failures.update { $0.append(line) } }
        )
        let stop = try StopSignal()
        for _ in 0..<20 {
            while try desk.round(until: stop) == .zero {}
            isLate.update { $0 = true }
            clock.advance(by: .seconds(1000))
        }
        let lines = try folder.read("log").split(separator: "\n").map(String.init)
        // Always the complete alert, and nothing after it was accepted.
        #expect(lines.count == 8)
        #expect(Set(lines).count == 1)
        let json = try Alert(json: String(try #require(lines.first).dropFirst("/hook?a=b ".count)))
        #expect(json.alert == .late)
        #expect(failures.value.count == 7)
        // A URL may contain a secret.
        #expect(failures.value.allSatisfy { !$0.contains("hook") })
        #expect(failures.value.filter { $0.contains("answered") }.count == 3)
    }

    @Test func stop_endsARequest() throws {
        let (socket, port) = listening()
        defer { close(socket) }
        let stop = try StopSignal()
        let ended = Locked(false)
        try OwnThread("test") {
            let url = "http://127.0.0.1:\(port)/"
            try? WebPost.send("{}", to: url, userAgent: "t", limit: .seconds(600), until: stop)
            ended.update { $0 = true }
        }.detach()
        let client = accept(socket, nil, nil)
        defer { close(client) }
        var byte: UInt8 = 0
        // Blocks until the request has begun.
        #expect(recv(client, &byte, 1, 0) == 1)
        #expect(!ended.value)
        stop.raise()
        try waitUntil("its end") { ended.value }
    }

    // MARK: The whole receiver

    private static let book = ".receiver-alerts.sqlite"

    private func waitForFirstSight(_ receiver: ReceiverProcess, _ device: String) throws {
        try waitUntil("first sight of \(device)") {
            let marks = try? receiver.sql("SELECT device FROM marks", in: Self.book)
            return marks?.contains("'\(device)'") == true
        }
    }

    private func lines(_ name: String) -> [String] {
        ((try? folder.read(name)) ?? "").split(separator: "\n").map(String.init)
    }

    /// A program that kills the receiver before it can record that the alert was sent.
    @Test func killedServer_repeatsOnlyTheAlertInProgress() throws {
        let path = try program(
            "tell",
            """
            echo "$WAYPOST_ALERT_ID" >> "$0.log"
            [ "$WAYPOST_ALERT" = critical ] && mkdir "$0.once" 2>/dev/null && kill -9 $PPID
            exit 0
            """
        )
        let receiver = try ReceiverProcess(["--alert-command", path])
        for device in ["d1", "d2", "d3"] { #expect(try receiver.send(device: device) == 200) }
        try waitForFirstSight(receiver, "d3")
        let now = RawRequest.time()
        let lost = #","kind":"source_lost","source":"audio","detail":{}"#
        let gap = #","kind":"gap","source":"storage","detail":{"stream":"beacons","records":12}"#
        #expect(try receiver.send(device: "d2", padding: gap, time: now) == 200)
        try waitUntil("losing") { lines("tell.log").count == 1 }
        #expect(try receiver.send(device: "d1", padding: lost, time: now) == 200)
        try waitUntil("critical") { lines("tell.log").count == 2 }
        // Only a dead receiver is started again.
        try waitUntil("the kill") { (try? RawClient(receiver)) == nil }
        #expect(receiver.terminate() == SIGKILL)
        // d3 was late before the receiver ended; d1 and d2 could not report while it was down.
        let hour = 3_600_000
        try receiver.sql("UPDATE devices SET last_seen=last_seen-\(9 * hour)")
        try receiver.sql(
            "UPDATE devices SET last_seen=last_seen-\(9 * hour) WHERE device='d3'"
        )
        try receiver.start()
        try waitUntil("late") { lines("tell.log").count == 4 }
        // A stop before it is recorded would send the alert again.
        try receiver.waitUntil("SELECT * FROM pending", gives: "[]\n", in: Self.book)
        #expect(receiver.terminate() == 0)
        try receiver.start()
        #expect(try receiver.send(device: "d4") == 200)
        try waitForFirstSight(receiver, "d4")
        let reported = lines("tell.log")
        let kinds = reported.map { $0.split(separator: "-").prefix(2).joined(separator: " ") }
        #expect(kinds == ["d2 losing", "d1 critical", "d1 critical", "d3 late"])
        #expect(reported[1] == reported[2])
        let browser = try PageClient(receiver, viewer: "anna")
        let html = try browser.get("/").body
        for part in [
            "1 late", "1 critical", "audio has been lost since", "12 lost in the last day",
        ] {
            #expect(html.contains(part), "\(part)")
        }
    }

    @Test func programThatHangs_holdsUpNoGateway_andNoStop() throws {
        let path = try program("hang", "echo started >> \"$0.log\"; sleep 1000")
        let receiver = try ReceiverProcess([
            "--alert-command", path, "--alert-url", "http://127.0.0.1:\(freePort())/",
        ])
        #expect(try receiver.send() == 200)
        try waitForFirstSight(receiver, "d1")
        let lost = #","kind":"source_lost","source":"audio","detail":{}"#
        #expect(try receiver.send(padding: lost, time: RawRequest.time()) == 200)
        try waitUntil("a program") { lines("hang.log") == ["started"] }
        for _ in 0..<20 { #expect(try receiver.send() == 200) }
        #expect(receiver.terminate() == 0)
        let channels = "SELECT channel FROM pending"
        #expect(try receiver.sql(channels, in: Self.book) == "[('command',), ('url',)]\n")
        // The alerts of a channel no longer in use are dropped.
        let without = try ReceiverProcess(["--alert-command", "/bin/true"], in: receiver.folder)
        try receiver.waitUntil(channels, gives: "[]\n", in: Self.book)
        #expect(without.terminate() == 0)
        // Without a channel the old state is deleted.
        _ = try ReceiverProcess(in: receiver.folder).terminate()
        #expect(!FileManager.default.fileExists(atPath: AlertBook.path(in: receiver.folder)))
    }

    @Test func wrongOptions_areReportedAtStart() throws {
        let path = try folder.write("", to: "plain", mode: 0o600)
        for arguments in [
            ["--alert-command", "/none"], ["--alert-command", path], ["--alert-command", "/"],
            ["--alert-command", "mail anna"], ["--alert-url", "ftp://h/"], ["--alert-url", "h:80"],
        ] {
            let outcome = try Process.run(
                Tree.program("waypost-receiver"),
                arguments + ["--summary"]
            )
            #expect(outcome.status == 64, "\(arguments)")
            #expect(outcome.error.contains("\(arguments[0]) takes"), "\(outcome.error)")
        }
    }
}
