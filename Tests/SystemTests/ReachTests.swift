import Foundation
import Support
import Testing

/// A gateway whose token is refused, against the reference receiver.
@Suite struct ReachSystemTests {
    @Test func tokenThatWasRefused_isForgotten_whenTheFileChanges() throws {
        let device = try Device()
        try device.write("bad", "token", mode: 0o600)
        try device.configure(
            """
            [upload]
            required = false
            endpoint = "\(try device.startReceiver(tokens: "good"))"
            token_file = "\(device.folder)/token"
            interval = "24h"
            """
        )
        try device.start()
        #expect(try device.run("sync").status == 1)
        #expect(
            try eventually { try device.run("status", "--json").output.contains("token refused") }
        )
        // The next tick may be a day away: only the change of the file triggers a sync.
        try device.write("good", "token", mode: 0o600)
        try waitUntil("uploads") {
            try device.stream("waypost_events")["uploaded"] as? Int ?? 0 > 0
        }
        try waitUntil("their bytes") {
            let upload = try device.status()["upload"] as? [String: Any]
            return upload?["bytes_today"] as? Int ?? 0 > 500
        }
        #expect(try device.run("status").output.contains(" today"))
    }
}
