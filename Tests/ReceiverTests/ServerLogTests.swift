// Log lines that contain text from clients.
import Testing

@testable import ServerBase

@Suite struct ServerLogTests {
    /// Including the controls of Latin 1, where one character begins an escape sequence.
    @Test func whatAClientSent_beginsNoLine_andMovesNoCursor() {
        let line = "d1 ü: \u{1B}[2J\n\u{9B}31m\u{202E}\u{2028}\u{7F}"
        #expect(ServerLog.printable(line) == "d1 ü: ?[2J??31m???")
    }
}
