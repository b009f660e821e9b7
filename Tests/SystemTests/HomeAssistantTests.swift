// The gateway's live outputs on a real Home Assistant, where somebody has made one.
import Foundation
import Support
import Testing

/// `sudo Tests/Peers/home-assistant ROOT prepare` makes a root; WAYPOST_HOME_ASSISTANT names it.
@Suite struct HomeAssistantTests {
    private static let root = ProcessInfo.processInfo.environment["WAYPOST_HOME_ASSISTANT"]

    @Test(.enabled(if: root != nil, "WAYPOST_HOME_ASSISTANT does not name a root"))
    func everyQuantityOfFiftyBeacons_isAnEntity() throws {
        let outcome = try Process.run(
            "/usr/bin/python3",
            [
                Tree.path("Tests/Peers/home-assistant"), #require(Self.root),
                "--port", "\(freePort())", "--mqtt-port", "\(freePort())",
                "--bin", (Tree.program("waypost") as NSString).deletingLastPathComponent, "check",
            ]
        )
        #expect(outcome.status == 0, "\(outcome.output)\(outcome.error)")
    }
}
