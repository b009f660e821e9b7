// Another program that holds the database: it is named, and nothing is lost by it.
import Board
import Foundation
import Streams
import Support
import Testing

@testable import Queue

@Suite struct LockTests {
    /// A program that keeps everybody else out until its input ends.
    private final class Holder {
        private let process = Process()
        private let input = Pipe()

        init(_ database: String, _ statement: String) throws {
            let output = Pipe()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = [
                "python3", "-c",
                """
                import sqlite3, sys
                database = sqlite3.connect(sys.argv[1], isolation_level=None)
                database.executescript(sys.argv[2])
                print("holds it", flush=True)
                sys.stdin.read()
                """, database, statement,
            ]
            process.standardInput = input
            process.standardOutput = output
            try process.run()
            #expect(!output.fileHandleForReading.availableData.isEmpty)
        }

        deinit { process.terminate() }

        var message: String {
            "another program holds the database: python3 (process \(process.processIdentifier)), "
                + "end it; records wait in memory"
        }

        func end() throws {
            try input.fileHandleForWriting.close()
            process.waitUntilExit()
        }
    }

    private func failure(_ queue: Queue) -> String? {
        guard case .error(let failure, _) = queue.storage.state else { return nil }
        return failure.message
    }

    @Test func programThatWrites_isNamed_andItsEndIsWaitedFor() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue()
        defer { queue.close() }
        queue.accept(testSighting(0))
        try queue.flushed()
        let holder = try Holder(folder.database, "BEGIN EXCLUSIVE")
        queue.accept(testSighting(1))
        try waitUntil("the failure") { failure(queue) != nil }
        #expect(failure(queue) == "\(folder.database): \(holder.message)")
        try holder.end()
        try waitUntil("both records") { try queue.reader().newest(.beacons) == 2 }
        try waitUntil("all is well") { failure(queue) == nil }
    }

    /// In exclusive mode not even a reader gets in.
    @Test func programThatHoldsItAtTheStart_isWaitedFor() throws {
        let folder = TemporaryFolder()
        let before = try folder.queue()
        before.accept(testSighting(0))
        before.close()
        let holder = try Holder(
            folder.database,
            "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE database SET generation=generation;"
        )
        let queue = try folder.queue()
        defer { queue.close() }
        #expect(failure(queue)?.hasSuffix(holder.message) == true, "\(failure(queue) ?? "")")
        queue.accept(testSighting(1))
        guard case .held(let message) = DatabaseLook(folder.database, limit: .milliseconds(20))
        else {
            Issue.record("the lock is not seen from outside")
            return
        }
        #expect(holder.message.hasPrefix(message))
        try holder.end()
        try waitUntil("both records") {
            queue.generation > 0 && (try? queue.reader().newest(.beacons)) == 2
        }
    }
}
