// Opens files for a copy, never through a symbolic link.
import CLinux
import Glibc
import Host

/// An error: a path that is not followed.
struct LinkedPathError: Error, CustomStringConvertible {
    var path: String

    var description: String {
        "\(printable(path, limit: 300)) is or is behind a symbolic link, which is not followed"
    }
}

/// An open regular file below a folder.
struct PlainFile: ~Copyable {
    private static let block = 1 << 20
    /// Bytes before a place that show whether two files are the same up to there.
    private static let tailSize: Int64 = 4096

    /// O_PATH, a macro that Swift cannot import.
    private static let pathOnly: Int32 = 0o10_000_000

    private let file: Descriptor
    private let path: String
    /// Bytes, as it was opened.
    let size: Int64
    let mode: mode_t
    let modified: timespec

    private init(_ file: consuming Descriptor, path: String, status: stat) {
        self.file = file
        self.path = path
        size = Int64(status.st_size)
        mode = status.st_mode & 0o777
        modified = status.st_mtim
    }

    /// Opens a path relative to a folder; nil if there is none, or it is not a regular file.
    ///
    /// Throws LinkedPathError if a part of the path is a symbolic link.
    static func open(
        _ path: String,
        in folder: borrowing Descriptor,
        _ flags: Int32 = O_RDONLY,
        mode: mode_t = 0
    ) throws -> PlainFile? {
        guard let number = try openBeneath(path, folder, flags, mode) else { return nil }
        let file = Descriptor(owning: number)
        var status = stat()
        guard fstat(file.number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        return PlainFile(file, path: path, status: status)
    }

    /// Opens a path name by name, so that none of them can be a link or lead out of the folder; nil
    /// if there is none.
    private static func openBeneath(
        _ path: String,
        _ folder: borrowing Descriptor,
        _ flags: Int32,
        _ mode: mode_t
    ) throws -> Int32? {
        let names = path.split(separator: "/").map(String.init)
        var number = folder.number
        defer { if number != folder.number { close(number) } }
        for (index, name) in names.enumerated() {
            guard name != ".." else { throw Failure("\(printable(path)) leads out of its folder") }
            let isLast = index == names.count - 1
            // A pipe of that name must not block the caller, and a link is opened itself.
            let kind = isLast ? flags | O_NONBLOCK : Self.pathOnly
            let next = openat(number, name, kind | O_NOFOLLOW | O_CLOEXEC, mode)
            guard next >= 0, !isLink(next) else {
                let error = next >= 0 ? ELOOP : errno
                if next >= 0 { close(next) }
                if error == ENOENT || error == ENOTDIR { return nil }
                guard error != ELOOP else {
                    throw LinkedPathError(path: path)
                }
                errno = error
                throw SystemError.last("open", on: path)
            }
            if isLast { return next }
            if number != folder.number { close(number) }
            number = next
        }
        return nil
    }

    private static func isLink(_ number: Int32) -> Bool {
        var status = stat()
        return fstat(number, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    /// Returns whether the bytes before a place are those of another file, as far as the last 4 kB
    /// show.
    func hasSameTail(as other: borrowing PlainFile, before place: Int64) throws -> Bool {
        let start = max(0, place - Self.tailSize)
        let count = Int(place - start)
        return try readBytes(count, of: file.number, at: start, path)
            == readBytes(count, of: other.file.number, at: start, other.path)
    }

    /// Copies bytes of another file to the same place in this one, cuts off what is behind them,
    /// and takes over the time of the change.
    func copy(_ range: Range<Int64>, of other: borrowing PlainFile) throws {
        var place = range.lowerBound
        while place < range.upperBound {
            let count = Int(min(Int64(Self.block), range.upperBound - place))
            let block = try readBytes(count, of: other.file.number, at: place, other.path)
            guard !block.isEmpty else { throw Failure("\(other.path) has become shorter") }
            try writeBytes(block, to: file.number, at: place, path)
            place += Int64(block.count)
        }
        guard ftruncate(file.number, Int(range.upperBound)) == 0 else {
            throw SystemError.last("truncate", on: path)
        }
        var times = [other.modified, other.modified]
        guard futimens(file.number, &times) == 0 else {
            throw SystemError.last("utimens", on: path)
        }
    }
}
