// The files that one group of batches is written to.
import Glibc
import Host
import ServerBase

/// Appends records to the file of each stream, day and device, and writes their audio files.
///
/// Bounded: buffers at most a megabyte, and keeps no file open between two writes.
final class BatchFiles {
    private static let buffered = 1 << 20

    private struct RecordFile {
        /// The length before this group, in bytes.
        var start: Int64
        var written: Int64 = 0
        var waiting: [UInt8] = []
    }

    private let directory: String
    private let folders: DurableFolders
    /// By folder.
    private var files: [String: RecordFile]
    private var waiting = 0
    /// The paths of these batches' audio files.
    private var sounds: [String] = []
    /// Folders that got a new directory entry.
    private var changed: Set<String> = []

    /// `lengths`: the current end of the file in each folder.
    init(in folders: DurableFolders, lengths: [String: Int64]) {
        directory = folders.directory
        self.folders = folders
        files = lengths.mapValues { RecordFile(start: $0) }
    }

    /// The files that were written to, relative to the directory, and their new lengths.
    var lengths: [String: Int64] {
        var lengths: [String: Int64] = [:]
        for (folder, file) in files where file.written > 0 {
            lengths[ArchiveFile.path(in: folder)] = file.start + file.written
        }
        return lengths
    }

    /// Appends a batch's record as a line; audio goes into a file that the line names.
    ///
    /// `isAhead`: see `writeLine`.
    func append(
        _ record: IncomingRecord,
        of batch: IncomingBatch,
        _ body: ByteView,
        isAhead: Bool
    ) throws {
        let date = record.time.date
        if let audio = record.audio, let name = record.soundName {
            try writeAudio(audio, to: name, batch.audioFolder(date), body)
        }
        let folder = batch.folder(date)
        try record.writeLine(of: body, for: .archive, isAhead: isAhead) { try add($0, folder) }
        try add([10], folder)
    }

    /// Flushes and fsyncs everything, and cuts off what a crash may have left behind it.
    func finish() throws {
        try flush()
        mustHold(
            files.values.allSatisfy(\.waiting.isEmpty),
            "a length counts written bytes only"
        )
        var paths = sounds
        for (folder, file) in files where file.written > 0 {
            paths.append("\(directory)/\(ArchiveFile.path(in: folder))")
            if file.start == 0 { changed.insert(folder) }
        }
        let new = changed.map { "\(directory)/\($0)" } + folders.takeChanged()
        try syncAll(paths + new)
    }

    /// Removes what was written, as far as the disk allows; the next start removes the rest.
    func undo() {
        for (folder, file) in files where file.written > 0 {
            let path = "\(directory)/\(ArchiveFile.path(in: folder))"
            // A person may have emptied the file since.
            if fileSize(path) ?? 0 > file.start { truncate(path, Int(file.start)) }
        }
        for path in sounds { unlink(path) }
        // The new folders may not have been synced.
        folders.forget()
    }

    // MARK: Lines

    private func add(_ bytes: some Collection<UInt8>, _ folder: String) throws {
        let added: Void? = files[folder]?.waiting += bytes
        mustHold(added != nil, "a record goes into a file of its batch")
        waiting += bytes.count
        if waiting > Self.buffered { try flush() }
    }

    private func flush() throws {
        let sum = files.values.reduce(0) { $0 + $1.waiting.count }
        invariant(waiting == sum, "the bytes that wait are those of all files")
        for (folder, var file) in files where !file.waiting.isEmpty {
            try folders.make(folder)
            if try file.written == 0 && isLineOpen(folder, at: file.start) {
                file.waiting.insert(10, at: 0)
            }
            // Counted before the write, because a write may fail halfway.
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

    /// Returns whether the last line has no newline at its end, as an editor may have left it.
    private func isLineOpen(_ folder: String, at end: Int64) throws -> Bool {
        guard end > 0 else { return false }
        let path = "\(directory)/\(ArchiveFile.path(in: folder))"
        return try LineFile.open(path)?.read(1, at: end - 1) != [10]
    }

    private func writeAudio(
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
