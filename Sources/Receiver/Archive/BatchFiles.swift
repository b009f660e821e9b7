// The files that a group of batches is written to.
import Glibc

/// Appends records to the file of each stream, day and device, and writes sound beside them.
///
/// Bounded: what waits to be written is a megabyte, and no file is open between two writes.
final class BatchFiles {
    private static let buffered = 1 << 20

    private struct RecordFile {
        /// Bytes that were there before.
        var start: Int64
        var written: Int64 = 0
        var waiting: [UInt8] = []
    }

    private let directory: String
    private let folders: DurableFolders
    /// By their folders.
    private var files: [String: RecordFile]
    private var waiting = 0
    /// Sound files of these batches, by their paths.
    private var sounds: [String] = []
    /// Folders in which names are new.
    private var changed: Set<String> = []

    /// `lengths`: where the file of each folder ends.
    init(in folders: DurableFolders, lengths: [String: Int64]) {
        directory = folders.directory
        self.folders = folders
        files = lengths.mapValues { RecordFile(start: $0) }
    }

    /// The files that were written to, from the directory on, and where they end now.
    var lengths: [String: Int64] {
        var lengths: [String: Int64] = [:]
        for (folder, file) in files where file.written > 0 {
            lengths[ArchiveFile.path(in: folder)] = file.start + file.written
        }
        return lengths
    }

    /// A record's line; sound goes into a file of its own, which the line names.
    ///
    /// `isAhead`: see `writeLine`.
    func append(
        _ record: IncomingRecord,
        of body: ByteView,
        to folder: String,
        isAhead: Bool = false
    ) throws {
        if let audio = record.audio, let name = record.soundName {
            try writeSound(audio, to: name, folder, body)
        }
        try record.writeLine(of: body, isAhead: isAhead) { try add($0, folder) }
        try add([10], folder)
    }

    /// All of it is on the disk when this returns, and cut off behind it what a crash may have left.
    func finish() throws {
        try flush()
        var paths = sounds
        for (folder, file) in files where file.written > 0 {
            paths.append("\(directory)/\(ArchiveFile.path(in: folder))")
            if file.start == 0 { changed.insert(folder) }
        }
        let new = changed.map { "\(directory)/\($0)" } + folders.takeChanged()
        try syncAll(paths + new, in: directory)
    }

    /// Takes back what was written, as far as the disk lets it; a start does the rest.
    func undo() {
        for (folder, file) in files where file.written > 0 {
            let path = "\(directory)/\(ArchiveFile.path(in: folder))"
            // A person may have emptied it meanwhile.
            if fileSize(path) ?? 0 > file.start { truncate(path, Int(file.start)) }
        }
        for path in sounds { unlink(path) }
        // What was to be synced has not been.
        folders.forget()
    }

    // MARK: Lines

    private func add(_ bytes: some Collection<UInt8>, _ folder: String) throws {
        files[folder]?.waiting += bytes
        waiting += bytes.count
        if waiting > Self.buffered { try flush() }
    }

    private func flush() throws {
        for (folder, var file) in files where !file.waiting.isEmpty {
            try folders.make(folder)
            if try file.written == 0 && isLineOpen(folder, at: file.start) {
                file.waiting.insert(10, at: 0)
            }
            // Noted before it is written: half of it may be.
            files[folder]?.written += Int64(file.waiting.count)
            files[folder]?.waiting = []
            let (start, count) = (file.start + file.written, Int64(file.waiting.count))
            let written = try WrittenFile("\(directory)/\(ArchiveFile.path(in: folder))")
            try written.expectBytes(before: start)
            try written.write(file.waiting, at: start)
            try written.cut(at: start + count)
        }
        waiting = 0
    }

    /// Whether a person's editor has left the last line there without an end.
    private func isLineOpen(_ folder: String, at end: Int64) throws -> Bool {
        guard end > 0 else { return false }
        let path = "\(directory)/\(ArchiveFile.path(in: folder))"
        return try LineFile.open(path)?.read(1, at: end - 1) != [10]
    }

    private func writeSound(
        _ audio: IncomingRecord.Audio,
        to name: String,
        _ folder: String,
        _ body: ByteView
    ) throws {
        try folders.make(folder)
        let path = "\(directory)/\(folder)/\(name)"
        sounds.append(path)
        changed.insert(folder)
        let file = try WrittenFile(path)
        var position: Int64 = 0
        try Base64Text(body, audio.data).decode { block in
            try file.write(block, at: position)
            position += Int64(block.count)
        }
        try file.cut(at: position)
    }
}
