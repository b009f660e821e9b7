// Gaps of a device that fails repeatedly: their cost and their reports.
import Host
import Queue
import Records
import Support
import SourceSupport
import Testing

import Audio

extension CaptureFaultTests {
    /// Each return to it costs the sound of the other: one fault is proof enough.
    @Test func failingPreferredDevice_isLeftAtFirstFault() throws {
        let source = try Source(Microphone())
        let other = try Microphone()
        let names = [source.microphone.device(), other.device()]
        source.microphone.become(.stalled)
        try source.run(names) {
            #expect(eventually { source.recorder.all.runs.last?.device == names[1] })
            #expect(source.hears(12))
            let before = source.count
            try source.plugIn()
            #expect(eventually { source.count > before })
            #expect(eventually { source.runs == 2 })
            #expect(source.count == before + 1)
        }
        let gap = try #require(source.recorder.all.events.last { $0.kind == .gap })
        #expect(Double(lostFrames(gap)) / 16_000 < 6)
    }

    /// A cable that breaks for a moment each second: what a person reads is bounded, what the ledger has is all of it.
    @Test func gapAfterGap_isAnEventForTheFirstOnes() throws {
        let source = try Source(Microphone())
        try source.run([source.microphone.device()]) {
            for count in 1...20 {
                #expect(source.hears(1))
                source.microphone.overrun(Int64(count))
                #expect(eventually { source.runs == count + 1 })
            }
        }
        let all = source.recorder.all
        let reported = all.events.compactMap(\.loss)
        #expect(reported.count == 12)
        #expect(all.losses.count == 8)
        #expect(all.losses.allSatisfy { $0.stream == .audio && $0.kind == .gap && $0.records == 1 })
        #expect(zip(all.losses, all.losses.dropFirst()).allSatisfy { $0.to.boot <= $1.from.boot })
    }
}
