// Keeps copies of the file ends that the receiver cuts off when it starts.
import Glibc
import Host
import ServerBase

/// Copies the bytes behind a file's committed length before they are cut off.
///
/// After a crash, the gateways send those records again. If an older copy of the index was
/// restored, they do not, because the records were confirmed. Only a person knows which of the two
/// happened.
enum TruncatedFiles {
    /// The folder of the copies, with a subfolder per start; query engines skip names with a dot.
    static let name = ".receiver-cut"

    struct Tail {
        /// The path in the archive.
        var file: String
        /// Bytes.
        var start: Int64
        var end: Int64
    }

    /// Returns a message about the copy; a failed copy does not stop the start, as on a full disk.
    static func keep(_ tails: [Tail], in directory: String) -> String {
        let bytes = tails.reduce(0) { $0 + $1.end - $1.start }
        let what = "\(bytes) bytes of \(tails.count) files are not in the index and were cut off"
        let place = "\(name)/\(SystemClock().wall().rfc3339)"
        do {
            let folders = DurableFolders(directory)
            var copies: [String] = []
            for tail in tails {
                let copy = "\(place)/\(tail.file)"
                try folders.make(folder(ofPath: copy))
                try write(tail, of: directory, to: "\(directory)/\(copy)")
                copies.append("\(directory)/\(copy)")
            }
            try syncAll(copies + folders.takeChanged())
        } catch {
            return "\(what), and could not be kept: \(error). After a crash they are sent again"
        }
        return
            "\(what), and are kept in \(directory)/\(place). After a crash gateways send them again: delete the copy. "
            + "If an older index was restored they do not: keep it"
    }

    private static func write(_ tail: Tail, of directory: String, to copy: String) throws {
        let path = "\(directory)/\(tail.file)"
        let source = try Descriptor(opening: path, O_RDONLY)
        let written = try WrittenFile(copy)
        var offset = tail.start
        while offset < tail.end {
            let count = Int(min(1 << 20, tail.end - offset))
            let block = try readBytes(count, of: source.number, at: offset, path)
            guard !block.isEmpty else { return }
            try written.write(block, at: offset - tail.start)
            offset += Int64(block.count)
        }
    }
}
