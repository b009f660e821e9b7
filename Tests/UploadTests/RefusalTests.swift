// Records that a server refuses: found in few requests, set aside with its words, and nothing else with them.
import Board
import Foundation
import Host
import Store
import Testing
import Upload

@Suite struct RefusalTests {
    /// Whether a request carries the fix that `addFixes` gave this number.
    private static func has(_ number: Int, _ request: Request) -> Bool {
        let text = String(decoding: (try? gunzip(request.body)) ?? Data(), as: UTF8.self)
        return text.contains(String(format: "\"longitude\":%.7f,", Double(number) / 1e6))
    }

    @Test(arguments: [
        Behaviour.answer(status: 422, body: "bad longitude"),
        .answer(status: 400, body: "bad longitude"),
        .answer(status: 200, body: #"{"accepted": 9999, "rejected": 1}"#),
    ])
    func poisonAmongTenThousand_isFoundInTwoRequestsAHalving(refusal: Behaviour) throws {
        let bench = try UploadBench { Self.has(5000, $0) ? refusal : .ok }
        defer { bench.finish() }
        bench.add(10_000)
        #expect(try bench.sync())
        let figures = try #require(bench.figures)
        #expect(figures.uploaded == 9999)
        #expect(figures.quarantined == 1)
        #expect(figures.pending == 0)
        #expect(figures.accepted == 10_000)
        let refused = try bench.queue.perform { try $0.quarantined() }
        #expect(refused.map(\.first) == [5001])
        // 9000 records in one batch behind the newest 1000: 14 halvings, both halves sent, and three more.
        let locations = try bench.server.requests.map(SentBatch.init).filter {
            $0.stream == "places"
        }
        #expect(locations.count <= 2 * 14 + 3)
        #expect(locations.count > 14)
        // Nothing else was sent twice to a server that had taken it.
        let taken = locations.filter { !($0.first...$0.last).contains(5001) }
        #expect(taken.reduce(0) { $0 + $1.last - $1.first + 1 } == 9999)
    }

    @Test func twoPoisons_areBothFound() throws {
        let bench = try UploadBench {
            Self.has(3, $0) || Self.has(4, $0) ? .answer(status: 422, body: "no") : .ok
        }
        defer { bench.finish() }
        bench.add(64)
        #expect(try bench.sync())
        #expect(bench.figures?.uploaded == 62)
        let refused = try bench.queue.perform { try $0.quarantined() }
        #expect(refused.map(\.first).sorted() == [4, 5])
    }

    @Test func tooLarge_isHalvedDownToTheOneThatStaysTooLarge() throws {
        let bench = try UploadBench {
            Self.has(42, $0) ? .answer(status: 413, body: "over 1 kB") : .ok
        }
        defer { bench.finish() }
        bench.add(100)
        #expect(try bench.sync())
        #expect(bench.figures?.uploaded == 99)
        let refused = try bench.queue.perform { try $0.quarantined() }
        #expect(refused.map(\.first) == [43])
        #expect(refused.map(\.last) == [43])
        #expect(refused.first?.error == "HTTP 413: over 1 kB")
        #expect(bench.board.state.value?.phase == .idle)
    }

    @Test func serversWords_areShortAndHarmless() throws {
        let words =
            "bad\r\n\u{1B}[31mred\u{7F}\u{9B}2J \u{202E}turned\u{0} caf\u{E9} "
            + String(repeating: "x", count: 5000)
        let bench = try UploadBench { _ in .answer(status: 422, body: words) }
        defer { bench.finish() }
        bench.add(1)
        _ = try bench.sync()
        let error = try #require(try bench.queue.perform { try $0.quarantined() }.first?.error)
        #expect(error.hasPrefix("HTTP 422: bad [31mred2J turned caf\u{E9} xxx"))
        #expect(error.count <= 220)
        let scalars = error.unicodeScalars
        #expect(scalars.allSatisfy { $0.value >= 32 && !(0x7F...0x9F).contains($0.value) })
        #expect(!scalars.contains("\u{202E}"))
    }

    @Test func brokenText_isStillWords() {
        let answer = Answer(status: 422, body: [0xFF, 0xFE, 0x41, 0xC3])
        guard case .refused(let words) = Verdict(answer) else {
            Issue.record("not refused")
            return
        }
        #expect(words == "HTTP 422: \u{FFFD}\u{FFFD}A\u{FFFD}")
    }

    @Test func portalsContentType_isHarmlessInTheMessage() {
        let answer = Answer(
            status: 200,
            contentType: "text/html\u{1B}]0;x" + String(repeating: "y", count: 500),
            body: Array("<html>".utf8)
        )
        guard case .retry(let failure, _) = Verdict(answer) else {
            Issue.record("not retried")
            return
        }
        #expect(!failure.message.contains("\u{1B}"))
        #expect(failure.message.count < 200)
    }
}
