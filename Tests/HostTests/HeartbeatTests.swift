import Host
import Testing

@Suite struct LifeSignTests {
    @Test func threadThatWaits_saysHowLongItMeansTo() throws {
        let life = Heartbeat()
        #expect(life.word.due == nil)
        life.enters("poll", for: .seconds(5))
        let word = life.word
        #expect(word.due.map { $0 - word.since } == .seconds(5))
        #expect(word.overdue(at: word.since + .seconds(4)) < .zero)
        #expect(word.overdue(at: word.since + .seconds(7)) == .seconds(2))
    }

    @Test func threadThatIsAsked_isExpectedBackFromThenOn() throws {
        let life = Heartbeat()
        life.enters("poll", for: nil)
        #expect(life.word.due == nil)
        life.asked()
        let due = try #require(life.word.due)
        #expect(due >= life.word.since)
        life.rests()
        #expect(life.word.due == nil)
        life.ends()
        life.asked()
        #expect(life.word.due == nil)
    }

    /// An announced pause of an hour is not a hang, whoever asks.
    @Test func threadThatSaidWhenItIsBack_isNotExpectedEarlier() throws {
        let life = Heartbeat()
        life.enters("poll", for: .seconds(3600))
        let due = try #require(life.word.due)
        life.asked()
        #expect(life.word.due == due)
    }

    @Test func callIsNamedWhileItLasts_andNoLonger() {
        let life = Heartbeat()
        life.during("ioctl(HCIDEVUP)") { #expect("\(life.word.call)" == "ioctl(HCIDEVUP)") }
        #expect("\(life.word.call)" == "its own code")
    }

    @Test func threadThatDoesNotEnd_isLeftToItself() throws {
        let stop = try StopSignal()
        let thread = try OwnThread("stubborn") { _ = stop.sleep(for: .seconds(60)) }
        let hasEnded = thread.join(within: .milliseconds(10))
        #expect(!hasEnded)
        stop.raise()
        let quick = try OwnThread("quick") {}
        let quickHasEnded = quick.join(within: .seconds(60))
        #expect(quickHasEnded)
    }
}
