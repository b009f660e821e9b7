// The files that one batch is written to.
import Glibc

/// Appends the records of a batch to the file of each day, and writes sound beside them.
///
/// Bounded: what waits to be written is a megabyte, and no file is open between two writes.
final class BatchFiles {
    private static let buffered = 1 << 20

    private struct Day {
        /// Bytes that were there before.
        var start: Int64
        var written: Int64 = 0
        var waiting: [UInt8] = []
    }

    private let directory: String
    private let folders: DurableFolders
    private let stream: String
    private let device: String
    private var days: [String: Day]
    private var waiting = 0
    /// Sound files of this batch, by their paths.
    private var sounds: [String] = []
    /// Folders in which names are new.
    private var changed: Set<String> = []

    /// `lengths`: where the file of each day ends.
    init(_ batch: IncomingBatch, in folders: DurableFolders, lengths: [String: Int64]) throws {
        directory = folders.directory
        self.folders = folders
        stream = batch.stream
        device = batch.device
        days = lengths.mapValues { Day(start: $0) }
    }

    /// A day's file, from the directory on.
    static func name(_ batch: IncomingBatch, _ date: String) -> String {
        "\(folder(batch.stream, batch.device, date))/records.ndjson"
    }

    private static func folder(_ stream: String, _ device: String, _ date: String) -> String {
        "stream=\(stream)/date=\(date)/device=\(device)"
    }

    /// The files that were written to, from the directory on, and where they end now.
    var lengths: [String: Int64] {
        var lengths: [String: Int64] = [:]
        for (date, day) in days where day.written > 0 {
            lengths["\(Self.folder(stream, device, date))/records.ndjson"] = day.start + day.written
        }
        return lengths
    }

    /// A record's line; sound goes into a file of its own, which the line names.
    func append(_ record: IncomingRecord, of body: ByteView) throws {
        let date = record.time.date
        if let audio = record.audio {
            let name = "\(record.time.compact)_\(record.id).\(audio.format)"
            try writeSound(audio, to: name, date, body)
            try appendMembers(of: record, body, soundName: name)
        } else {
            try appendLine(body, record.extent, date)
        }
        try add([10], date)
    }

    /// All of it is on the disk when this returns, and cut off behind it what a crash may have left.
    func finish() throws {
        try flush()
        for (date, day) in days where day.written > 0 {
            let folder = Self.folder(stream, device, date)
            let file = try WrittenFile("\(directory)/\(folder)/records.ndjson")
            try file.finish(at: day.start + day.written)
            if day.start == 0 { changed.insert(folder) }
        }
        for folder in changed { try syncFolder("\(directory)/\(folder)") }
    }

    /// Takes back what was written, as far as the disk lets it; a start does the rest.
    func undo() {
        for (date, day) in days where day.written > 0 {
            truncate(
                "\(directory)/\(Self.folder(stream, device, date))/records.ndjson",
                Int(day.start)
            )
        }
        for path in sounds { unlink(path) }
    }

    // MARK: Lines

    /// The members one by one, the sound's replaced by its file's name.
    private func appendMembers(of record: IncomingRecord, _ body: ByteView, soundName: String)
        throws
    {
        let date = record.time.date
        var separator = UInt8(ascii: "{")
        var text = JSONText(body, at: record.extent.lowerBound)
        try text.object { text, name in
            let value = try text.value()
            try add([separator], date)
            separator = UInt8(ascii: ",")
            if JSONString.read(body, name) == "audio_data" {
                try add(Array("\"audio_file\":\"\(soundName)\"".utf8), date)
            } else {
                try appendLine(body, name, date)
                try add([UInt8(ascii: ":")], date)
                try appendLine(body, value, date)
            }
        }
        try add([UInt8(ascii: "}")], date)
    }

    /// In correct JSON line ends stand only between values, so they can be left out.
    private func appendLine(_ body: ByteView, _ range: Range<Int>, _ date: String) throws {
        var start = range.lowerBound
        while start < range.upperBound {
            let end = body.lineEnd(from: start, to: min(range.upperBound, start + (64 << 10)))
            try add(body[start..<end], date)
            body.release(start..<end)
            start = end
            while start < range.upperBound, body[start] == 10 || body[start] == 13 { start += 1 }
        }
    }

    private func add(_ bytes: some Collection<UInt8>, _ date: String) throws {
        days[date]?.waiting += bytes
        waiting += bytes.count
        if waiting > Self.buffered { try flush() }
    }

    private func flush() throws {
        for (date, day) in days where !day.waiting.isEmpty {
            let folder = Self.folder(stream, device, date)
            try folders.make(folder)
            // Noted before it is written: half of it may be.
            days[date]?.written += Int64(day.waiting.count)
            days[date]?.waiting = []
            let file = try WrittenFile("\(directory)/\(folder)/records.ndjson")
            try file.write(day.waiting, at: day.start + day.written)
        }
        waiting = 0
    }

    private func writeSound(
        _ audio: IncomingRecord.Audio,
        to name: String,
        _ date: String,
        _ body: ByteView
    ) throws {
        let folder = Self.folder(stream, device, date)
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
        try file.finish(at: position)
    }
}
