// What lies in a file behind the end that the index knows.
import Foundation
import Glibc
import Host

/// Keeps it aside before it is cut off.
///
/// After a crash the gateways send it again. Where an older copy of the index was put back they do not, for they were told
/// that it is stored: nobody but a person knows which it was.
enum TruncatedFiles {
    /// A folder of its own each time, with the same paths in it: engines pass over names with a dot.
    static let name = ".receiver-cut"

    struct Tail {
        /// Its path in the archive.
        var file: String
        /// Bytes.
        var start: Int64
        var end: Int64
    }

    /// Returns what there is to say of it: also where it could not be kept, for a start on a full disk goes on.
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
            try syncAll(copies + folders.takeChanged(), in: directory)
        } catch {
            return "\(what), and could not be kept: \(error). After a crash they come again"
        }
        return
            "\(what), and lie in \(directory)/\(place). After a crash they come again: delete them. "
            + "Where an older copy of the index was put back they do not"
    }

    private static func write(_ tail: Tail, of directory: String, to copy: String) throws {
        let source = FileHandle(forReadingAtPath: "\(directory)/\(tail.file)")
        guard let source else { throw Trouble("open", tail.file) }
        let written = try WrittenFile(copy)
        try source.seek(toOffset: UInt64(tail.start))
        var done: Int64 = 0
        while done < tail.end - tail.start {
            let count = Int(min(1 << 20, tail.end - tail.start - done))
            guard let block = try source.read(upToCount: count), !block.isEmpty else { return }
            try written.write([UInt8](block), at: done)
            done += Int64(block.count)
        }
    }
}
