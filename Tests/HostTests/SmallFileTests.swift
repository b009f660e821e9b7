// Small files in a directory that belongs to somebody else, who changes names as fast as he can.
import Foundation
import Support
import Testing

import Host

@Suite struct SmallFileTests {
    private static let nobody = FileOwner(user: 65534, group: 65534)
    private let folder = TemporaryFolder("theirs")

    private func figures(_ path: String) throws -> stat {
        var figures = stat()
        try #require(lstat(path, &figures) == 0, "\(path)")
        return figures
    }

    /// Calls `body` again and again while each temporary file is swapped for a link to a file of root's, then checks that one.
    private func whileNamesAreSwapped(_ body: (_ path: String) throws -> Void) throws {
        let victim = try folder.write("secret", to: "victim", mode: 0o600)
        let theirs = folder.path + "/theirs"
        let (swaps, isOver) = (Locked(0), Locked(false))
        let swapper = try OwnThread("swapper") {
            while !isOver.value {
                for name in names(inFolder: theirs) where name.hasSuffix(".new") {
                    let path = "\(theirs)/\(name)"
                    if unlink(path) == 0, symlink(victim, path) == 0 { swaps.update { $0 += 1 } }
                }
            }
        }
        for _ in 0..<100_000 where swaps.value < 100 {
            // A name that has gone meanwhile is an error, and rightly.
            try? body("\(theirs)/file")
            unlink("\(theirs)/file")
        }
        isOver.update { $0 = true }
        swapper.join()
        #expect(swaps.value >= 100)
        let figures = try figures(victim)
        #expect(figures.st_mode & 0o7777 == 0o600)
        #expect(figures.st_uid == getuid() && figures.st_gid == getgid())
        #expect(try folder.read("victim") == "secret")
    }

    @Test func replacedFile_getsModeAndOwner_despiteNameSwaps() throws {
        let owner = getuid() == 0 ? Self.nobody : nil
        try whileNamesAreSwapped {
            try SmallFile.replace($0, Array("text".utf8), mode: 0o644, owner: owner)
        }
    }

    @Test func fileThatIsMade_getsItsOwner_whateverItsNameLeadsTo() throws {
        let owner = getuid() == 0 ? Self.nobody : nil
        try whileNamesAreSwapped {
            let theirs = String($0.dropLast("/file".count))
            _ = try SmallFile.create("file", in: theirs, Array("text".utf8), owner: owner)
        }
    }

    @Test(.enabled(if: getuid() == 0)) func file_belongsToItsOwner_withItsMode() throws {
        let theirs = folder.path + "/theirs"
        try SmallFile.replace("\(theirs)/a", [1], mode: 0o640, owner: Self.nobody)
        #expect(try SmallFile.create("b", in: theirs, [2], owner: Self.nobody))
        for name in ["a", "b"] {
            let figures = try figures("\(theirs)/\(name)")
            #expect(figures.st_uid == Self.nobody.user && figures.st_gid == Self.nobody.group)
        }
        #expect(try figures("\(theirs)/a").st_mode & 0o7777 == 0o640)
        try SmallFile.replace("\(theirs)/a", [3], mode: 0o600, keepsOwner: true)
        let kept = try figures("\(theirs)/a")
        #expect(kept.st_uid == Self.nobody.user && kept.st_mode & 0o7777 == 0o640)
    }

    @Test func linkOfAnotherUser_isNotFollowed_norAPipeAwaited() throws {
        let secret = try folder.write("secret", to: "secret")
        let (link, pipe) = (folder.path + "/theirs/link", folder.path + "/theirs/pipe")
        #expect(symlink(secret, link) == 0 && mkfifo(pipe, 0o600) == 0)
        #expect(throws: SystemError("open", on: link, code: ELOOP)) {
            try SmallFile.read(link, limit: 64, followsLink: false)
        }
        #expect(SmallText.read(link, followsLink: false) == nil)
        #expect(SmallText.read(link) == "secret")
        #expect(SmallText.read(pipe, followsLink: false) == "")
        #expect(SmallText.read(secret, limit: 3, followsLink: false) == "sec")
    }
}
