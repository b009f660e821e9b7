// Files that last: in which folder a name is put on the disk, and what a full disk is called.
import Glibc
import Testing

@testable import Host

@Suite struct WholeFileTests {
    @Test(arguments: [("/etc/waypost/token", "/etc/waypost"), ("/token", "/"), ("token", ".")])
    func folder_isWhereTheNameStands(_ path: String, _ expected: String) {
        #expect(folder(ofPath: path) == expected)
    }

    @Test func fullDisk_namesCallAndFile() {
        #expect(throws: SystemError("write", on: "/dev/full", code: ENOSPC)) {
            try Descriptor(opening: "/dev/full", O_WRONLY).write(whole: [0], "/dev/full")
        }
    }

    @Test(arguments: [
        (1000, 4096, 4_096_000), (UInt64.max, 4096, 1 << 60), (UInt64.max / 2, 1, 1 << 60),
    ])
    func fileSystemWithoutALimit_hasMuchRoom(_ blocks: UInt64, _ size: UInt64, _ bytes: Int64) {
        #expect(FileSpace.bytes(blocks: blocks, of: size) == bytes)
    }

    @Test func missingFile_namesCallAndFile() {
        #expect(throws: SystemError("open", on: "/nowhere/at/all", code: ENOENT)) {
            try Descriptor(opening: "/nowhere/at/all", O_RDONLY).sync("")
        }
    }
}
