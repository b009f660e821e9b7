// Another program locks the database: it is named, and nothing is lost.
import Foundation
import Host
import Records
import StatusBoard
import Support
import Testing

@testable import Queue
import QueueSupport

@Suite struct LockTests {
    /// A program that locks everybody else out until its input ends.
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

    /// In exclusive mode readers are locked out too.
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
        guard case .held(let message) = DatabaseProbe(folder.database, limit: .milliseconds(20))
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

    /// An earlier owner of the lock must not make the queue continue in a file that could not be
    /// quarantined.
    @Test func holderOfThePast_doesNotKeepACondemnedFileInUse() throws {
        let folder = TemporaryFolder()
        let clock = ManualClock(testStart)
        let queue = try folder.queue(clock: clock)
        defer { queue.close() }
        queue.accept(testSighting(0))
        try queue.flushed()
        let holder = try Holder(folder.database, "BEGIN EXCLUSIVE")
        queue.accept(testSighting(1))
        #expect(throws: QueueClosedError.self) { try queue.flushed() }
        try holder.end()
        clock.advance(by: .seconds(60))
        try queue.flushed()

        // A marker cannot be written where a folder is.
        let mark = DatabaseFile.nameAside(queue.settings) + CommitMark.suffix
        #expect(mkdir(mark, 0o700) == 0)
        let before = queue.generation
        queue.reportDamage("for the test", generation: before)
        try waitUntil("the failure") { failure(queue)?.contains("for the test") ?? false }
        #expect(rmdir(mark) == 0)
        clock.advance(by: .seconds(60))
        queue.accept(testSighting(2))
        try queue.flushed()
        #expect(queue.generation > before)
    }

    // MARK: /proc/locks

    private let file = LockedFile(device: DeviceNumber(major: 0xFE, minor: 1), inode: 131)

    /// Process 1, so that none of this test's processes is meant.
    private func locks(_ file: String, _ kind: String = "WRITE") -> String {
        """
        1: FLOCK  ADVISORY  WRITE 1 fe:01:131 0 EOF
        2: POSIX  ADVISORY  \(kind) 1 \(file) 1073741826 1073742335
        2: -> POSIX  ADVISORY  WRITE 1 fe:01:131 0 EOF
        """
    }

    private func finds(_ text: String) -> Bool {
        DatabaseHolder.find([file], in: text, where: \.isExclusive)?.pid == 1
    }

    @Test func lockOnTheFile_isFound() {
        #expect(finds(locks("fe:01:131")))
        #expect(!finds(locks("fe:01:131", "READ")))
        #expect(!finds(locks("fe:01:132")))
        for text in ["", "\n", "fe:131", "fe::131", "zz:01:131", "fe:01:"] {
            #expect(!finds(locks(text)), "\(text)")
        }
    }

    @Test func lockOnAFileOfTheSameInodeElsewhere_isNotFound() {
        #expect(!finds(locks("fe:02:131")))
        #expect(!finds(locks("08:01:131")))
        let likely = DatabaseHolder.likely([file], in: locks("fe:02:131"), where: \.isExclusive)
        #expect(likely == nil)
    }

    /// btrfs: `stat` and /proc/locks give two devices.
    @Test func lockOnAFileOfNoDisk_isOnlyLikely() {
        let file = LockedFile(device: DeviceNumber(major: 0, minor: 0x2A), inode: 131)
        let text = locks("00:1f:131")
        #expect(DatabaseHolder.find([file], in: text, where: \.isExclusive) == nil)
        #expect(DatabaseHolder.likely([file], in: text, where: \.isExclusive)?.pid == 1)
    }
}
