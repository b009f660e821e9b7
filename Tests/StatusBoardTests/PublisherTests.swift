// The status board: guarantees to subscribers, on one thread and on many.
import Foundation
import Host
import Synchronization
import Testing

import StatusBoard

/// Records the states that a handler received, as text.
private final class Heard: Sendable {
    private let states = Mutex<[String]>([])

    var all: [String] { states.withLock { $0 } }

    func record(_ state: BoardState<Int>) {
        let text = Self.words(state)
        states.withLock { $0.append(text) }
    }

    /// All four states, each with the value it carries.
    static func words(_ state: BoardState<Int>) -> String {
        switch state {
        case .unknown: "unknown"
        case .loading(let previous): "loading \(previous.map { "\($0)" } ?? "-")"
        case .loaded(let value): "loaded \(value)"
        case .error(let failure, let previous):
            "\(failure) \(previous.map { "\($0)" } ?? "-")"
        }
    }
}

/// A gate where a thread waits for another; fails after half a minute.
private final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func open() { semaphore.signal() }

    func pass() { #expect(semaphore.wait(timeout: .now() + 30) == .success) }
}

private final class Owner: Sendable {}

/// A value that handlers share.
private final class Box<Value: Sendable>: Sendable {
    private let content: Mutex<Value>

    init(_ value: Value) {
        content = Mutex(value)
    }

    func update<Result: Sendable>(_ change: (inout Value) -> Result) -> Result {
        content.withLock { change(&$0) }
    }

    /// The value, which `new` takes the place of.
    func replace(with new: Value) -> Value {
        content.withLock { value in
            defer { value = new }
            return value
        }
    }
}

@Suite struct PublisherTests {
    @Test func lateSubscriber_getsTheCurrentStateAtOnce() {
        let publisher = Publisher<Int>()
        let early = Heard()
        let first = publisher.subscribe(early.record)
        publisher.loaded(7)
        let late = Heard()
        let second = publisher.subscribe(late.record)
        #expect(early.all == ["unknown", "loaded 7"])
        #expect(late.all == ["loaded 7"])
        withExtendedLifetime((first, second)) {}
    }

    @Test func eachOfTheFourStates_comesWithTheValueBefore() {
        let publisher = Publisher<Int>()
        let heard = Heard()
        let subscription = publisher.subscribe(heard.record)
        publisher.loading()
        publisher.failed(Failure("no", code: .network))
        publisher.loaded(1)
        publisher.loading()
        publisher.failed(Failure("gone"))
        publisher.failed(Failure("still gone"))
        publisher.loaded(2)
        publisher.publish(.unknown)
        #expect(
            heard.all == [
                "unknown", "loading -", "E001 no -", "loaded 1", "loading 1", "gone 1",
                "still gone 1", "loaded 2", "unknown",
            ]
        )
        #expect(publisher.state.value == nil)
        withExtendedLifetime(subscription) {}
    }

    @Test func droppedSubscription_isNeverCalledAgain() {
        let publisher = Publisher<Int>()
        let heard = Heard()
        var subscription: Subscription? = publisher.subscribe(heard.record)
        publisher.loaded(1)
        withExtendedLifetime(subscription) {}
        subscription = nil
        publisher.loaded(2)
        #expect(heard.all == ["unknown", "loaded 1"])
    }

    @Test func cancelledSubscription_isNotCalledByActivePublish() {
        let publisher = Publisher<Int>()
        let (isIn, mayGo, isOver) = (Gate(), Gate(), Gate())
        // Called first, and held there: the second is known to this publish already.
        let first = publisher.subscribe { state in
            guard case .loaded = state else { return }
            isIn.open()
            mayGo.pass()
        }
        let heard = Heard()
        var second: Subscription? = publisher.subscribe(heard.record)
        withExtendedLifetime(second) {}
        Thread.detachNewThread {
            publisher.loaded(1)
            isOver.open()
        }
        isIn.pass()
        second = nil
        mayGo.open()
        isOver.pass()
        #expect(heard.all == ["unknown"])
        withExtendedLifetime(first) {}
    }

    @Test func droppedSubscription_releasesItsOwnerAtOnce() {
        let publisher = Publisher<Int>()
        weak var owner: Owner?
        do {
            let strong = Owner()
            owner = strong
            let subscription = publisher.subscribe { _ in withExtendedLifetime(strong) {} }
            publisher.loaded(1)
            withExtendedLifetime(subscription) {}
        }
        #expect(owner == nil)
    }

    @Test func publisher_isReleasedWhileSubscriptionsLive() {
        weak var weakly: Publisher<Int>?
        var subscription: Subscription?
        do {
            let publisher = Publisher<Int>()
            weakly = publisher
            subscription = publisher.subscribe { _ in }
        }
        #expect(weakly == nil)
        withExtendedLifetime(subscription) {}
    }

    @Test func oneFollowsMany_andManyFollowOne() {
        let publishers = (0..<3).map { _ in Publisher<Int>() }
        let followers = (0..<3).map { _ in Heard() }
        let subscriptions = followers.flatMap { follower in
            publishers.map { $0.subscribe(follower.record) }
        }
        for (number, publisher) in publishers.enumerated() { publisher.loaded(number) }
        let expected = ["unknown", "unknown", "unknown", "loaded 0", "loaded 1", "loaded 2"]
        for follower in followers { #expect(follower.all == expected) }
        withExtendedLifetime(subscriptions) {}
    }

    @Test func olderState_neverComesAfterTheNewer() {
        let publisher = Publisher<Int>()
        let heard = Heard()
        let (isIn, mayGo, isOver) = (Gate(), Gate(), Gate())
        let subscription = publisher.subscribe { state in
            // The first publish has been given its state and is interrupted before it can be noted.
            if state.value == 1 {
                isIn.open()
                mayGo.pass()
            }
            heard.record(state)
        }
        Thread.detachNewThread {
            publisher.loaded(1)
            isOver.open()
        }
        isIn.pass()
        publisher.loaded(2)
        publisher.loaded(3)
        mayGo.open()
        isOver.pass()
        #expect(heard.all == ["unknown", "loaded 1", "loaded 3"])
        withExtendedLifetime(subscription) {}
    }

    @Test func publishInHandler_isDeferred_andNewestStateWins() {
        let publisher = Publisher<Int>()
        let (heard, other) = (Heard(), Heard())
        let depth = Box(0)
        let subscription = publisher.subscribe { state in
            let level = depth.update { depth -> Int in
                depth += 1
                return depth
            }
            #expect(level == 1)
            heard.record(state)
            if let value = state.value, value < 3 { publisher.loaded(value + 1) }
            depth.update { $0 -= 1 }
        }
        let second = publisher.subscribe(other.record)
        publisher.loaded(1)
        #expect(heard.all == ["unknown", "loaded 1", "loaded 2", "loaded 3"])
        #expect(other.all.last == "loaded 3")
        withExtendedLifetime((subscription, second)) {}
    }

    @Test func handler_mayReadSubscribeAndUnsubscribe() {
        let publisher = Publisher<Int>()
        let (heard, inner) = (Heard(), Heard())
        let kept = Box<[Subscription]>([])
        let first = publisher.subscribe { state in
            // Each of these would wait for ever if a lock were held.
            heard.record(publisher.state)
            guard state.value == 1 else { return }
            let new = publisher.subscribe(inner.record)
            kept.update { $0.append(new) }
        }
        kept.update { $0.append(first) }
        publisher.loaded(1)
        let ending = publisher.subscribe { state in
            guard state.value == 2 else { return }
            _ = kept.replace(with: [])
        }
        withExtendedLifetime(first) {}
        publisher.loaded(2)
        publisher.loaded(3)
        #expect(inner.all.first == "loaded 1")
        #expect(!inner.all.contains("loaded 3"))
        #expect(heard.all.prefix(2) == ["unknown", "loaded 1"])
        withExtendedLifetime(ending) {}
    }

    @Test func handler_mayDropItsOwnSubscription() {
        let publisher = Publisher<Int>()
        let heard = Heard()
        let own = Box<Subscription?>(nil)
        var subscription: Subscription? = publisher.subscribe { state in
            heard.record(state)
            guard state.value == 1 else { return }
            _ = own.replace(with: nil)
        }
        _ = own.replace(with: subscription)
        subscription = nil
        publisher.loaded(1)
        publisher.loaded(2)
        #expect(heard.all == ["unknown", "loaded 1"])
    }

    /// Threads that publish, subscribe and unsubscribe at once.
    @Test func concurrentSubscribers_getTheNewest_oneCallAtATime() {
        let publisher = Publisher<Int>()
        let rounds = 2000
        let next = Box(0)
        let followers = (0..<4).map { _ in Follower() }
        let subscriptions = followers.map { publisher.subscribe($0.receive) }
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for _ in 0..<rounds {
                if thread == 3 {
                    // One that comes and goes.
                    let passing = Follower()
                    let subscription = publisher.subscribe(passing.receive)
                    #expect(passing.last >= 0)
                    withExtendedLifetime(subscription) {}
                } else {
                    let value = next.update { value -> Int in
                        value += 1
                        return value
                    }
                    publisher.loaded(value)
                }
            }
        }
        let newest = publisher.state.value ?? -1
        for follower in followers {
            #expect(follower.last == newest)
            #expect(!follower.hasOverlapped)
            #expect(follower.calls > 0)
        }
        withExtendedLifetime(subscriptions) {}
    }
}

/// Keeps the last value it was given, and notices a second caller.
private final class Follower: Sendable {
    private let value = Atomic(0)
    private let count = Atomic(0)
    private let inside = Atomic(0)
    private let overlapped = Atomic(false)

    var last: Int { value.load(ordering: .acquiring) }
    var calls: Int { count.load(ordering: .acquiring) }
    var hasOverlapped: Bool { overlapped.load(ordering: .acquiring) }

    func receive(_ state: BoardState<Int>) {
        if inside.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue > 1 {
            overlapped.store(true, ordering: .releasing)
        }
        value.store(state.value ?? 0, ordering: .releasing)
        count.wrappingAdd(1, ordering: .relaxed)
        inside.wrappingSubtract(1, ordering: .acquiringAndReleasing)
    }
}
