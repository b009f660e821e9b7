// `waypost status` on a terminal, and `--watch` on one of 24 lines.
import Foundation
import Support
import Testing

@Suite struct WatchScreenTests {
    /// Runs a command on a pseudo-terminal of 24 × 80, and prints what the terminal got and the exit
    /// status.
    ///
    /// Once the first screen is there it presses `q`, or sends SIGTERM to a process: the
    /// command itself (0) or another.
    private static let terminal = """
        import fcntl, json, os, pty, signal, struct, sys, termios
        pid, fd = pty.fork()
        if pid == 0: os.execv(sys.argv[2], sys.argv[2:])
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        got, isAsked = b"", False
        while True:
            try: part = os.read(fd, 65536)
            except OSError: break
            if not part: break
            got += part
            if not isAsked and b"storage" in got:
                isAsked = True
                if sys.argv[1] == "q": os.write(fd, b"xq")
                else: os.kill(int(sys.argv[1]) or pid, signal.SIGTERM)
        _, status = os.waitpid(pid, 0)
        print(json.dumps({"got": got.decode(), "status": os.waitstatus_to_exitcode(status)}))
        """

    private let device: Device

    init() throws { device = try Device() }

    private func watch(_ end: String) throws -> (got: String, status: Int) {
        let program = [Tree.program("waypost"), "status", "--watch", "--config", device.config]
        let outcome = try Process.run("/usr/bin/python3", ["-c", Self.terminal, end] + program)
        let parsed = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
        let answer = try #require(parsed as? [String: Any], "\(outcome.error)")
        return (answer["got"] as? String ?? "", answer["status"] as? Int ?? -1)
    }

    @Test(arguments: ["q", "0"])
    func alternateScreen_keepsItsFirstLine_andIsLeft(end: String) throws {
        try device.start()
        let (got, status) = try watch(end)
        #expect(got.contains("\u{1B}[?1049h"))
        #expect(got.hasSuffix("\u{1B}[?1049l"))
        #expect(!got.contains("\u{1B}[3J"), "erases the scrollback")
        let frames = got.components(separatedBy: "\u{1B}[H").dropFirst()
        for frame in frames {
            #expect(frame.hasPrefix("waypost "))
            #expect(frame.components(separatedBy: "\n").count <= 24)
        }
        #expect(!frames.isEmpty)
        // A device without a source and a server is healthy, or degraded for its clock.
        #expect(end == "q" ? [0, 1].contains(status) : status == 128 + Int(SIGTERM))
    }

    /// A shell sets the terminal's size before the command starts.
    @Test(arguments: [50, 120]) func statusOnATerminal_isAsWideAsThat(columns: Int) throws {
        try device.configure("[location]\ngpsd = \"127.0.0.1:1\"\n")
        try device.start()
        try waitUntil("a long reason") {
            (try device.status()["reasons"] as? [String])?.contains { $0.count > 80 } == true
        }
        let status = "'\(Tree.program("waypost"))' status --config '\(device.config)' 2>&-"
        let shell = ["/bin/sh", "-c", "stty cols \(columns); \(status)"]
        let outcome = try Process.run("/usr/bin/python3", ["-c", Self.terminal, "0"] + shell)
        let parsed = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
        let got = try #require((parsed as? [String: Any])?["got"] as? String, "\(outcome.error)")
        let plain = got.replacing(/\u{1B}\[[0-9;]*m/, with: "")
        let lengths = plain.split(whereSeparator: \.isNewline).map(\.count)
        #expect(lengths.allSatisfy { $0 <= columns }, "\(plain)")
        #expect(lengths.contains { $0 > min(80, columns - 15) }, "\(plain)")
    }

    @Test func gatewayThatEnds_isReportedBelowTheScreen() throws {
        try device.start()
        let daemon = try #require(device.daemon)
        let (got, status) = try watch("\(daemon.processIdentifier)")
        #expect(status == 2)
        let parts = got.components(separatedBy: "\u{1B}[?1049l")
        #expect(parts.count == 2)
        #expect(parts.last?.contains("not running") == true, "\(got)")
    }
}
