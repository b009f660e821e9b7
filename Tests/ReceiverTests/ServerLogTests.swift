// Lines of the log, which have words of clients in them.
import Testing

@testable import Receiver

@Suite struct ServerLogTests {
    /// Not with the controls of Latin 1 either, which begin an escape sequence in one character.
    @Test func whatAClientSent_beginsNoLine_andMovesNoCursor() {
        let line = "d1 ü: \u{1B}[2J\n\u{9B}31m\u{202E}\u{2028}\u{7F}"
        #expect(ServerLog.printable(line) == "d1 ü: ?[2J??31m???")
    }
}
