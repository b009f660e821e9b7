// Which files a follower reads, and up to where.
import Foundation
import Host
import Support
import Testing

@testable import ServerArchive
@testable import ServerBase

@Suite struct ArchiveFollowerTests {
    private let follower: ArchiveFollower

    init() throws {
        let log = ServerLog(isQuiet: true)
        follower = try ArchiveFollower("test", result: "read", pause: .milliseconds(10), log: log)
    }

    private static func file(_ device: String, _ length: Int64 = 1) -> ArchiveFile {
        ArchiveFile(stream: "s", date: "2026-11-21", device: device, length: length)
    }

    /// It may have grown since it could not be read.
    @Test func unreadableFile_isTriedAgain_upToItsNewestLength() throws {
        let isReadable = Locked(false)
        let tried = Locked<[Int64]>([])
        let read = Locked<[Int64]>([])
        try follower.start(
            { [follower] in
                try follower.follow(
                    list: { _ in [] },
                    read: { files in
                        let isGood = isReadable.value
                        for file in files {
                            (isGood ? read : tried).update { $0.append(file.length) }
                            follower.record(file, isGood ? nil : Failure("a test"))
                        }
                        return []
                    },
                    rest: {}
                )
            },
            failed: { _ in }
        )
        defer { follower.finish(within: .seconds(2)) }
        // A file noted before the files are listed is in the list.
        try waitUntil("a start") { !follower.isBehind }
        for length in [10, 20] as [Int64] {
            follower.record([Self.file("d1").path: length])
            try waitUntil("a try") { tried.value.contains(length) }
        }
        #expect(follower.hasUnread)
        isReadable.update { $0 = true }
        try waitUntil("it was read") { !follower.hasUnread }
        #expect(read.value == [20])
    }

    /// After a failure, too: what was noted until then is forgotten.
    @Test func listedFiles_areReadPageByPage_beforeLaterOnes() throws {
        let read = Locked<[String]>([])
        let hasFailed = Locked(false)
        try follower.start(
            { [follower] in
                try follower.follow(
                    list: { last in
                        switch last?.device {
                        case nil: [Self.file("a")]
                        case "a": [Self.file("b")]
                        default: []
                        }
                    },
                    read: { files in
                        read.update { $0 += files.map(\.device) }
                        guard hasFailed.value || files.first?.device != "c" else {
                            hasFailed.update { $0 = true }
                            throw Failure("a test")
                        }
                        if read.value.count == 1 { follower.record([Self.file("c").path: 1]) }
                        return []
                    },
                    rest: {}
                )
            },
            failed: { _ in }
        )
        defer { follower.finish(within: .seconds(2)) }
        try waitUntil("all") { follower.isDone && hasFailed.value }
        #expect(read.value == ["a", "b", "c", "a", "b"])
        #expect(!follower.isBehind)
    }
}
