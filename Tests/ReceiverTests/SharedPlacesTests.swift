// The places for costly work are divided among devices.
import Dispatch
import Foundation
import Support
import Testing

@testable import ServerWeb

@Suite struct SharedPlacesTests {
    private let places = SharedPlaces(2)
    private let done = Locked<[String]>([])

    /// Uses a place on another thread; the work ends at the returned signal.
    private func use(_ client: String) -> DispatchSemaphore {
        let end = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [places, done] in
            do {
                try places.use(client) {
                    done.update { $0.append(client) }
                    end.wait()
                }
            } catch {
                done.update { $0.append("\(client) refused") }
            }
        }
        return end
    }

    private func expect(_ clients: [String]) throws {
        try waitUntil("\(clients), not \(done.value)") { done.value == clients }
    }

    @Test func clientWithManyRequests_leavesTheOtherPlaceToOthers() throws {
        let first = use("a")
        try expect(["a"])
        // The second of the same client waits, though a place is free.
        let second = use("a")
        let other = use("b")
        try expect(["a", "b"])
        let third = use("c")
        // They get their turns one after another, whichever place is free.
        other.signal()
        try expect(["a", "b", "c"])
        first.signal()
        try expect(["a", "b", "c", "a"])
        for end in [second, third] { end.signal() }
    }

    @Test func requestsThatWait_areBounded() throws {
        let first = use("a")
        try expect(["a"])
        let waiting = (0..<17).map { _ in use("a") }
        try expect(["a", "a refused"])
        for end in [first] + waiting { end.signal() }
        try waitUntil("all turns") { done.value.count { $0 == "a" } == 17 }
    }
}
