// The next step of a sync, and its limits on refusals: pure values.
import Host
import Records
import Testing

@testable import Upload

@Suite struct SyncOrderTests {
    private static let streams: [Records.Stream] = [.events, .location, .beacons, .audio]
    private let start = BootInstant(nanoseconds: 0)

    private func order(first: Records.Stream? = nil) -> SyncOrder {
        SyncOrder(
            Self.streams,
            small: [.events, .location, .beacons],
            first: first,
            interval: .seconds(60)
        )
    }

    /// Returns the streams whose backlogs are tried, all of them empty.
    private func turns(_ order: SyncOrder) -> [Records.Stream] {
        var order = order
        var turns: [Records.Stream] = []
        while let step = order.next(), turns.count < 100 {
            turns.append(step.stream)
            order.isEmpty(step)
        }
        return turns
    }

    @Test func everyStreamHasItsTurn_whicheverBegins() {
        #expect(turns(order()) == Self.streams)
        for first in Self.streams {
            let turns = turns(order(first: first))
            #expect(turns.first == first)
            #expect(Set(turns) == Set(Self.streams))
        }
        // A stream that was removed is ignored.
        #expect(turns(order(first: .surveys)) == Self.streams)
    }

    @Test func newestGoFirst_whereNothingIsFrozen() {
        var order = order()
        order.beginWithNewest(at: start)
        let steps = (0..<4).map { _ in order.next() }
        #expect(
            steps == [
                .newest(.events, isFirst: true), .newest(.location, isFirst: true),
                .newest(.beacons, isFirst: true), .backlog(.events),
            ]
        )
        order.sent(.backlog(.events), at: start + .seconds(59))
        #expect(order.next() == .backlog(.events))
        order.sent(.backlog(.events), at: start + .seconds(60))
        #expect(order.next() == .newest(.events, isFirst: false))
    }

    @Test func newestFollowTheFirstAnswer_whereABatchWaited() {
        var order = order()
        #expect(order.next() == .backlog(.events))
        order.sent(.backlog(.events), at: start)
        #expect(order.next() == .newest(.events, isFirst: true))
    }

    @Test func restingStream_hasNoOtherTurn() {
        var order = order()
        order.rests(.events)
        order.rests(.beacons)
        order.beginWithNewest(at: start)
        #expect(turns(order) == [.location, .location, .audio])
        #expect(order.next() == .newest(.location, isFirst: true))
        #expect(order.next() == .backlog(.location))
        #expect(order.following == .beacons)
    }

    // MARK: Refusals

    /// Counts the requests to a server that refuses so many streams with so many of the largest
    /// batches each.
    private func requests(streams: Int, batches: Int) -> Int {
        var refusals = Refusals()
        refusals.beginSync()
        var count = 0
        for stream in Self.streams.prefix(streams) {
            for batch in 0..<batches {
                count += 1
                switch refusals.refused(Int64(count), stream, isAlone: batch > 16) {
                case .goOn: continue
                case .streamRests: break
                case .syncEnds: return count
                }
                break
            }
        }
        return count
    }

    @Test func refusals_areNeverMoreThanForty() {
        for streams in 1...4 {
            for batches in [1, 5, 20, 30, 100] {
                #expect(requests(streams: streams, batches: batches) <= 40)
            }
        }
        #expect(requests(streams: 1, batches: 100) == 27)
    }

    @Test func acceptance_beginsTheCountAnew() {
        var refusals = Refusals()
        refusals.beginSync()
        for number in 1...500 {
            let next = refusals.refused(Int64(number), .beacons, isAlone: true)
            #expect(next == .goOn)
            if number % 9 == 0 { refusals.accepted(.beacons) }
        }
    }

    @Test func refusedRecords_comeFirstOnlyWhereNothingIsTaken() {
        var refusals = Refusals()
        refusals.beginSync()
        for number in 1...10 { _ = refusals.refused(Int64(number), .beacons, isAlone: true) }
        #expect(refusals.hasJudged(10))
        refusals.beginSync()
        #expect(!refusals.hasJudged(10))
        #expect(refusals.comeFirst(.beacons))
        #expect(!refusals.comeFirst(.location))
        refusals.accepted(.beacons)
        #expect(!refusals.comeFirst(.beacons))
    }
}
