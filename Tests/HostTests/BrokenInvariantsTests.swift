// Checks that invariants that do not hold are counted, and that the first one is named and logged.
import Synchronization
import Testing

@testable import Host

@Suite struct BrokenInvariantsTests {
    @Test func firstBroken_isLoggedAndNamed() {
        let lines = Mutex<[String]>([])
        let broken = BrokenInvariants { line in lines.withLock { $0.append(line) } }
        #expect(broken.count == 0 && broken.first == nil)
        broken.note("numbers ascend", "Queue/Writer.swift:1")
        broken.note("bytes add up", "Queue/Writer.swift:2")
        #expect(broken.count == 2)
        #expect(broken.first == "numbers ascend (Queue/Writer.swift:1)")
        #expect(broken.last == "bytes add up (Queue/Writer.swift:2)")
        let logged = lines.withLock { $0 }
        #expect(
            logged == [
                "an invariant does not hold: numbers ascend (Queue/Writer.swift:1); please report it"
            ]
        )
    }

    @Test func whatHolds_isNotCounted() {
        let before = BrokenInvariants.shared.count
        invariant(before >= 0, "a count is not negative")
        #expect(BrokenInvariants.shared.count == before)
    }
}
