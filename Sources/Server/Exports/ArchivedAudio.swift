// The audio records of a device, and what is known of each.
import AudioTags
import Host
import ServerArchive
import ServerBase
import ServerIndex

/// An audio record of the archive.
struct ArchivedAudio {
    var id: String
    var chunk: AudioChunk
    /// Relative to the data folder.
    var path: String
    /// `ogg`, `flac`, `aac` or `wav`.
    var type: String
    /// Seconds.
    var duration: Double?
    var overlap: Double?
    var clock: String?
    /// False if nothing says that its times are right.
    var isDated: Bool
    var microphone: String?
    var deviceRate: Int?

    /// Nil if the record has no audio file of a known format.
    init?(_ record: RecordLine, in file: ArchiveFile) {
        guard let chunk = AudioDay.chunk(record), let id = record.identity?.id,
            let type = chunk.file.split(separator: ".").last
        else { return nil }
        (self.id, self.chunk, self.type) = (id, chunk, String(type))
        path = "\(ArchiveFile.audioFolder(file.stream, file.date, file.device))/\(chunk.file)"
        duration = record.number("duration")
        overlap = record.number("overlap_duration")
        clock = record.text("clock")
        isDated = record.isDated
        microphone = record.text("capture_device")
        deviceRate = record.number("device_rate").flatMap { Int(exactly: $0) }
    }

    /// The sample rate in Hz; nil if it is not reported, or absurd.
    var rate: Int? { chunk.rate.flatMap { (1...10_000_000).contains($0) ? Int($0) : nil } }

    /// Returns what its file's name and metadata say.
    func recording(of device: String, at place: Recording.Place?, _ firmware: String?) -> Recording
    {
        var recording = Recording(
            device: device,
            start: WallTime(milliseconds: chunk.start)
        )
        recording.place = place
        recording.rate = rate
        (recording.duration, recording.overlap) = (duration, overlap)
        (recording.clock, recording.recordID) = (clock, id)
        (recording.microphone, recording.firmware) = (microphone, firmware)
        recording.deviceRate = deviceRate
        return recording
    }
}

extension DeviceRecords {
    /// Returns the audio that begins on a date in the scope's range, in order of time, each record
    /// once.
    func sounds(on date: String, _ scope: ExportScope) throws -> [ArchivedAudio] {
        var sounds: [ArchivedAudio] = []
        var ids: Set<String> = []
        try forEach(.audio, on: { $0 == date }) { record, file in
            guard let sound = ArchivedAudio(record, in: file), scope.includes(sound.chunk.start),
                ids.insert(sound.id).inserted
            else { return }
            sounds.append(sound)
        }
        return sounds.sorted { ($0.chunk.start, $0.id) < ($1.chunk.start, $1.id) }
    }

    /// Returns the positions on a date and the days beside it.
    func positions(around date: String) throws -> PositionLog {
        var log = PositionLog()
        guard let day = Day(date) else { return log }
        let near = [-1, 0, 1].map { (step: Int64) in
            WallTime(milliseconds: day.start + step * Day.milliseconds).rfc3339.prefix(10)
        }
        try forEach(.positions, on: { near.contains($0[...]) }) { record, _ in
            guard let fix = Track.fix(record) else { return }
            let place = Recording.Place(
                latitude: fix.latitude,
                longitude: fix.longitude,
                accuracy: record.number("horizontal_accuracy"),
                altitude: fix.altitude
            )
            log.add(place, at: WallTime(milliseconds: fix.time))
        }
        return log
    }

    /// Returns the gateway's version, as its health said it on a date.
    func firmware(on date: String) throws -> String? {
        var version: String?
        try forEach(.health, on: { $0 == date }) { record, _ in
            version = record.text("version") ?? version
        }
        return version.map { "waypost \($0)" }
    }
}
