// Additional lines with `log.level = "debug"`.
import Foundation
import Support
import Testing

@Suite struct DebugLogTests {
    @Test(arguments: ["debug", "info"])
    func openedDevicesAndSyncs_areLines_atDebugAlone(_ level: String) throws {
        let device = try Device()
        try device.configure(
            """
            [upload]
            endpoint = "\(try device.startReceiver())"
            token_file = "\(device.folder)/token"
            [beacons]
            source = "btsnoop:\(Tree.path("Tests/Fixtures/beacons/capture.btsnoop"))"
            [log]
            level = "\(level)"
            """
        )
        try device.write("demo-token", "token", mode: 0o600)
        try device.write("", "log")
        let log = try #require(FileHandle(forWritingAtPath: device.folder + "/log"))
        try device.launch(log: log)
        try waitUntil("records at the server") {
            try device.run("sync").status == 0
                && device.stream("linux_bluez_beacons")["uploaded"] as? Int ?? 0 > 0
        }
        #expect(try device.stop() == 0)
        let lines = try String(contentsOfFile: device.folder + "/log", encoding: .utf8)
        #expect(lines.contains("debug: beacons, doing: ") == (level == "debug"))
        #expect(lines.contains("debug: sync, ") == (level == "debug"))
        #expect(lines.contains("info: running, "))
    }
}
