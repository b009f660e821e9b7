import Foundation
import Host
import StatusBoard
import Support
import Synchronization
import Testing

@testable import Queue
import QueueSupport
import Records

/// The WAL stays small whoever reads, and a reader that prevents that is named.
@Suite struct JournalTests {
    private func journal(_ folder: TemporaryFolder) -> Int64 {
        FileSpace.size(folder.database + "-wal")
    }

    @Test func shortReaders_neverLetTheJournalGrow() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(commitInterval: .milliseconds(2))
        let isOver = Mutex(false)
        // Always in a transaction, each a short one, like an upload of a backlog.
        let reading = Thread {
            guard let reader = try? queue.reader() else { return }
            while !isOver.withLock({ $0 }) { try? reader.sightingsThere(1...256) { _ in } }
        }
        queue.accept(testSighting(0))
        _ = try queue.perform { _ in true }
        reading.start()
        var largest: Int64 = 0
        for round in 0..<60 {
            record(queue, segments: 30, bytes: 20_000, from: round * 30)
            _ = try queue.perform { _ in true }
            largest = max(largest, journal(folder))
        }
        isOver.withLock { $0 = true }
        // 36 MB were written.
        #expect(largest < 16 << 20)
        #expect(largest > 0)
        queue.close()
    }

    /// Overwriting the WAL does not change its size, so a commit does not update file system
    /// metadata.
    @Test func journal_hasItsLengthFromTheStart_whereThereIsRoom() throws {
        let folder = TemporaryFolder()
        let limits = StorageLimits(maxSize: 20_000_000)
        var queue = try folder.queue(limits: limits)
        queue.checkStorage()
        queue.accept(testSighting(0))
        _ = try queue.perform { _ in true }
        let length = journal(folder)
        #expect(length >= limits.journal / 2)
        record(queue, segments: 10, bytes: 20_000)
        _ = try queue.perform { _ in true }
        #expect(journal(folder) == length)
        queue.close()

        queue = try folder.queue(limits: limits, freeSpace: { _ in 1_000_000 })
        queue.checkStorage()
        queue.accept(testSighting(0))
        _ = try queue.perform { _ in true }
        #expect(journal(folder) < limits.journal / 2)
        queue.close()
    }

    @Test func readerThatStays_isNamed() throws {
        let folder = TemporaryFolder()
        let queue = try folder.queue(limits: StorageLimits(maxSize: 20_000_000))
        queue.accept(testSighting(0))
        _ = try queue.perform { _ in true }
        // Another process, because the kernel reports only other processes' locks.
        let other = Process()
        other.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        other.arguments = [
            "python3", "-c",
            """
            import sqlite3, sys
            database = sqlite3.connect(sys.argv[1])
            database.execute("BEGIN")
            database.execute("SELECT count(*) FROM sightings").fetchall()
            print("reading", flush=True)
            sys.stdin.read()
            """, folder.database,
        ]
        let (input, output) = (Pipe(), Pipe())
        other.standardInput = input
        other.standardOutput = output
        try other.run()
        defer { other.terminate() }
        #expect(!output.fileHandleForReading.availableData.isEmpty)
        try waitUntil("the reader is named") {
            record(queue, segments: 30, bytes: 10_000)
            _ = try queue.perform { _ in true }
            return queue.storage.state.value?.detail.contains("process \(other.processIdentifier)")
                ?? false
        }
        try input.fileHandleForWriting.close()
        other.waitUntilExit()
        try waitUntil("the journal is small again") {
            queue.checkStorage()
            _ = try queue.perform { _ in true }
            return journal(folder) < 4 << 20
        }
        queue.close()
    }

    @Test func locks_areReadAsTheKernelWritesThem() {
        let locks = """
            1: POSIX  ADVISORY  READ 1 fe:01:131 120 120
            2: FLOCK  ADVISORY  WRITE 1 fe:01:131 0 EOF
            2: -> POSIX  ADVISORY  READ 1 fe:01:131 124 124
            3: POSIX  ADVISORY  READ \(getpid()) fe:01:131 124 124
            4: POSIX  ADVISORY  READ 1 fe:01:132 124 124
            """
        let disk = DeviceNumber(major: 0xFE, minor: 1)
        let reader = { (inode: UInt64, locks: String) in
            let file = LockedFile(device: disk, inode: inode)
            return DatabaseHolder.find([file], in: locks) { $0.first == 124 }
        }
        #expect(reader(131, locks) == nil)
        #expect(reader(132, locks)?.pid == 1)
        #expect(reader(131, "") == nil)
        let writer = { (locks: String) in
            let file = LockedFile(device: disk, inode: 131)
            return DatabaseHolder.find([file], in: locks, where: \.isExclusive)
        }
        #expect(writer(locks) == nil)
        #expect(writer(locks + "\n5: POSIX  ADVISORY  WRITE 1 fe:01:131 120 120")?.pid == 1)
    }
}
