// The accounts of all sources: their memo, and those of another database.
import Host
import Records
import Testing

@testable import Queue

extension EffortTime {
    /// Seconds after 2026-06-01 12:00 UTC, and after the start of a boot.
    init(afterNoon second: Int, _ boot: String = "a") {
        let wall = WallTime(milliseconds: 1_780_315_200_000 + Int64(second) * 1000)
        let instant = BootInstant(nanoseconds: Int64(second) * 1_000_000_000)
        self.init(boot: boot, stamp: Stamp(boot: instant, wall: wall))
    }
}

/// Describes intervals, which must tile: state, and seconds after noon.
func effortWords(_ intervals: [SealedSpan]) -> [String] {
    for (left, right) in zip(intervals, intervals.dropFirst()) {
        #expect(left.to == right.from)
    }
    return intervals.map { interval in
        func text(_ time: EffortTime) -> String {
            let second = time.stamp.boot.milliseconds / 1000
            return (time.boot == "a" ? "" : time.boot) + "\(second)"
        }
        return "\(interval.state.rawValue) \(text(interval.from))..\(text(interval.to))"
    }
}

@Suite struct EffortBookTests {
    private func time(_ second: Int) -> EffortTime { EffortTime(afterNoon: second) }

    private static let wall: @Sendable (EffortTime) -> Int64 = { $0.stamp.wall.milliseconds }

    private func reloaded(_ book: EffortBook, end: EffortTime?, sound: EffortTime?) -> EffortBook {
        var (book, again) = (book, EffortBook())
        let before = InheritedEffort(text: book.takeText() ?? "", end: end, endOfAudio: sound)
        again.follow(before)
        return again
    }

    @Test func memo_holdsEverythingButTheEndOfAudio() throws {
        var book = EffortBook()
        let reason = "hw:1,0: unplugged\nor \(String(repeating: "long ", count: 90))"
        book.record(.failed(reason), of: .beacons, at: time(1), number: 5)
        book.record(.listening, of: .beacons, at: time(3), number: 6)
        book.record(.off("stopped"), of: .beacons, at: time(9), number: 7)
        book.record(.listening, of: .audio, at: time(1), number: 5)
        book.record(.listening, of: .events, at: time(1), number: 5)
        var notes = EffortNotes()
        notes.heard = [.init(from: time(2).stamp, to: time(4).stamp, isContinued: false)]
        book.apply(notes, boot: "a") { _ in 8 }
        let again = reloaded(book, end: time(20), sound: time(6))
        #expect(again[.beacons]?.spans == book[.beacons]?.spans)
        #expect(again[.beacons]?.origin == time(1))
        #expect(again[.beacons]?.spans[0].reason.hasPrefix("hw:1,0: unplugged or long") == true)
        let kept = try #require(again[.beacons]).spans[0].reason
        #expect(kept.utf8.count <= 200)
        #expect(again[.events] == nil)
        #expect(again[.audio]?.spans.map(\.state) == [.listening, .recorded, .unknown])
        #expect(again[.audio]?.spans.last?.from == time(6))
    }

    @Test func audioThatGoesOn_changesNoMemo() {
        var book = EffortBook()
        book.record(.listening, of: .audio, at: time(0), number: 1)
        var texts: Set<String> = []
        for second in stride(from: 0, to: 60, by: 2) {
            var notes = EffortNotes()
            notes.heard = [
                .init(
                    from: time(second).stamp,
                    to: time(second + 2).stamp,
                    isContinued: second > 0
                )
            ]
            book.apply(notes, boot: "a") { Int64($0.number + second) }
            texts.insert(book.takeText() ?? "")
        }
        #expect(texts.count == 1)
    }

    /// A disk lost writes that it had called stored: a long memo ends in a page of another commit.
    @Test func memoOfMixedPages_isIgnored() {
        func text(_ reason: String) -> String {
            var book = EffortBook()
            book.record(.failed(reason), of: .beacons, at: time(1), number: 5)
            book.record(.listening, of: .location, at: time(1), number: 5)
            return book.takeText() ?? ""
        }
        let (old, new) = (text("old reason"), text("new reason"))
        for length in 12..<new.count - 1 where new.prefix(length) != old.prefix(length) {
            let mixed = String(new.prefix(length)) + old.dropFirst(length)
            guard mixed != new, mixed != old else { continue }
            var book = EffortBook()
            book.follow(InheritedEffort(text: mixed, end: time(8)))
            #expect(EffortBook.sources.allSatisfy { book[$0] == nil }, "\(mixed)")
        }
    }

    @Test func memoOfNoVersion_isIgnored() {
        var book = EffortBook()
        let text = "beacons x\nb 1\naudio - 0 0 1 2\n\nlocation\na 1 2 strange 4\n 7 8"
        let sum = Checksum.of(Array(text.utf8))
        book.follow(InheritedEffort(text: "\(sum)\n\(text)"))
        #expect(EffortBook.sources.allSatisfy { book[$0] == nil })
    }

    /// A disk that cannot be read at the start, or a quarantined database, brings them late.
    @Test func forgottenAccounts_areNotContinued() {
        var before = EffortBook()
        before.record(.listening, of: .beacons, at: time(1), number: 5)
        let old = InheritedEffort(text: before.takeText() ?? "", end: time(8))
        var book = EffortBook()
        book.clear()
        book.follow(old)
        #expect(book.inherit(old, wall: Self.wall).isEmpty)
        #expect(EffortBook.sources.allSatisfy { book[$0] == nil })
        #expect(book.takeText() == "")
    }

    // MARK: A quarantined database

    @Test func quarantinedDatabase_isContinuedOnce() {
        var before = EffortBook()
        before.record(.listening, of: .beacons, at: time(1), number: 5)
        let text = before.takeText() ?? ""
        let old = InheritedEffort(text: text, end: time(8))
        var book = EffortBook()
        book.record(.listening, of: .beacons, at: time(50), number: 1)
        let sealed = book.inherit(old, wall: Self.wall)
        #expect(effortWords(sealed.map(\.interval)) == ["recorded 1..8", "unknown 8..50"])
        #expect(book.inherit(old, wall: Self.wall).isEmpty)
        // The process that quarantined it went on with its own accounts.
        before.moved()
        #expect(before.inherit(old, wall: Self.wall).isEmpty)
        #expect(before[.beacons]?.spans.map(\.number) == [nil])
        // Its source has not begun yet.
        var empty = EffortBook()
        #expect(empty.inherit(old, wall: Self.wall).isEmpty)
        #expect(empty[.beacons]?.spans.map(\.state) == [.recorded, .unknown])
    }
}
