// A process without free descriptors reports the source that it cannot restart.
import Foundation
import Support
import Testing

@Suite struct ShortageTests {
    /// Connects first, since no one can later: the daemon has no descriptor left while it restarts
    /// a source.
    private static let script = """
        import json, socket, subprocess, sys
        path, daemon = sys.argv[1:]
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        lines = client.makefile("r")
        def ask(**request):
            client.sendall((json.dumps(request) + "\\n").encode())
            return json.loads(lines.readline())
        def allow(count):
            subprocess.run(["prlimit", "--pid", daemon, f"--nofile={count}:"], check=True)
        ask(command="status")
        allow(12)
        answer = ask(command="restart", argument="beacons")
        source = ask(command="status")["status"]["sources"]["beacons"]
        allow(1024)
        print(answer.get("error"), source["state"], source["reason"], sep=";")
        """

    @Test func unstartableSource_isAnError_andIsRetried() throws {
        let capture = Tree.path("Tests/Fixtures/beacons/capture.btsnoop")
        let device = try Device("[beacons]\nsource = \"btsnoop:\(capture)\"\nreplay_speed = 0")
        try device.launch(["--patience", "2"])
        try waitUntil("the replay") { try device.source("beacons")["state"] as? String == "loaded" }
        let daemon = "\(try #require(device.daemon).processIdentifier)"
        let socket = device.folder + "/run/control.sock"
        let client = try Process.run("/usr/bin/python3", ["-c", Self.script, socket, daemon])
        #expect(client.status == 0, "\(client.error)")
        #expect(client.output.hasPrefix("beacons could not be started; "), "\(client.output)")
        #expect(client.output.contains(";error;beacons could not be started: "), "\(client.output)")
        try waitUntil("another start") {
            try device.source("beacons")["state"] as? String == "loaded"
        }
        #expect(try device.stop() == 0)
    }
}
