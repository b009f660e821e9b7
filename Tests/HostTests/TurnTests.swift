import Host
import Synchronization
import Testing

@Suite struct TurnTests {
    @Test func turnThatIsTaken_isWaitedForNoLongerThanWanted() throws {
        let turn = Turn()
        let (isIn, mayGo) = (try Wakeup(), try Wakeup())
        let thread = try OwnThread("holder") {
            turn.take {
                isIn.signal()
                var entries = [PollEntry(mayGo.descriptor)]
                _ = wait(for: &entries)
            }
        }
        var entries = [PollEntry(isIn.descriptor)]
        #expect(wait(for: &entries, timeout: .seconds(60)) == 1)
        #expect(turn.take(within: .milliseconds(20)) { true } == nil)
        mayGo.signal()
        #expect(turn.take(within: .seconds(60)) { true } == true)
        thread.join()
    }

    @Test func turn_isOneThreadsAtATime() throws {
        let turn = Turn()
        let inside = Mutex((now: 0, maximum: 0))
        let body: @Sendable () -> Void = {
            for _ in 0..<200 {
                turn.take {
                    inside.withLock {
                        $0.now += 1
                        $0.maximum = max($0.maximum, $0.now)
                    }
                    inside.withLock { $0.now -= 1 }
                }
            }
        }
        let first = try OwnThread("first", body)
        let second = try OwnThread("second", body)
        first.join()
        second.join()
        #expect(inside.withLock { $0.maximum } == 1)
    }
}
