// Writes the audio files of an export, with names and metadata for science.
import Audio
import AudioTags
import Glibc
import Host
import Queue
import Records
import Schedule
import Setup
import Upload

/// The audio files of one export.
struct AudioFiles {
    private static let page: Int64 = 1024

    let folder: String
    let format: ExportFormat
    private let request: ExportRequest
    private let source: RecordSource
    private let reader: Reader
    private let complain: (String) -> Void
    private let device: String
    /// The board's own name; nil if it has none.
    private let model: String?
    /// Where the device stands by its configuration, for audio without a fix near it.
    private let site: Recording.Place?
    private var positions = PositionLog()
    private let settings: SiteSettings
    /// Seconds east of UTC of times without `ExportRequest.localOffset`.
    private let offset: Int
    private var names: UsedNames

    /// Creates the folder and reads the device's positions.
    init(
        _ request: ExportRequest,
        _ format: ExportFormat,
        _ reader: Reader,
        _ configuration: Configuration,
        _ complain: @escaping (String) -> Void
    ) throws {
        guard let folder = request.output else {
            throw Failure("audio is exported as one file per chunk: give a folder, --output FOLDER")
        }
        if mkdir(folder, 0o750) != 0, errno != EEXIST {
            throw Failure("\(SystemError.last("mkdir", on: folder))")
        }
        (self.folder, self.request, self.format, self.reader) = (folder, request, format, reader)
        self.complain = complain
        source = try RecordSource(reader: reader, clockMap: .max, sound: .named)
        device = configuration.knownDeviceID ?? "waypost"
        settings = configuration.site
        offset = request.names == .songmeter ? configuration.schedules.offset * 60 : 0
        names = UsedNames(request.names)
        site = configuration.schedules.fixed.map {
            Recording.Place(latitude: $0.latitude, longitude: $0.longitude)
        }
        model = SystemFiles(root: request.root).deviceTreeModel
        readPositions()
    }

    /// Writes the requested ones of these chunks; returns how many, how many of them not in the
    /// requested format, and how many are left out because they cannot be converted.
    mutating func write(_ range: ClosedRange<Int64>) throws -> (
        files: Int, asRecorded: Int, unconverted: Int
    ) {
        var count = (files: 0, asRecorded: 0, unconverted: 0)
        for stored in try source.chunks(range) {
            let moment = source.start(of: stored)
            guard request.isWanted(moment.wall) else { continue }
            do {
                let type = try write(stored, at: moment)
                count.files += 1
                if format != .recorded, format.rawValue != type { count.asRecorded += 1 }
            } catch let error as CodecError {
                // The chunks after it may be intact.
                complain(Self.message(moment.wall, error))
                count.unconverted += 1
            }
        }
        return count
    }

    /// Writes the file of a chunk; returns its type.
    private mutating func write(_ stored: Stored<Chunk>, at moment: Moment) throws -> String {
        let recording = try recording(of: stored, at: moment)
        let file = ChunkFile(
            stored: stored,
            source: source,
            reader: reader,
            recording: recording
        )
        let type = file.type(as: format)
        try file.write(type, to: "\(folder)/\(names.name(of: recording, type: type))")
        return type
    }

    private static func message(_ start: WallTime, _ error: any Error) -> String {
        "the chunk of \(start.rfc3339) is left out because it cannot be converted (\(error)); "
            + "--format recorded writes it as it is"
    }

    private mutating func recording(of stored: Stored<Chunk>, at moment: Moment) throws -> Recording
    {
        let chunk = stored.record
        var recording = Recording(device: device, start: moment.wall)
        recording.offsetMinutes = (request.localOffset?(moment.wall) ?? offset) / 60
        recording.place = positions.place(at: moment.wall) ?? site
        recording.rate = chunk.rate
        recording.duration = Double(chunk.frames) / Double(max(1, chunk.rate))
        recording.overlap = Double(chunk.overlapFrames) / Double(max(1, chunk.rate))
        recording.clock = moment.quality.rawValue
        let range = stored.sequence...stored.sequence
        recording.recordID = try reader.ids(.audio, range).id(stored.sequence)
        let microphone = CaptureDevice(stored: chunk.device)
        (recording.microphone, recording.deviceRate) = (microphone.name, microphone.rate)
        (recording.site, recording.siteFields) = (settings.name, settings.fields)
        recording.firmware = request.version.isEmpty ? nil : "waypost \(request.version)"
        recording.model = model
        return recording
    }

    /// Reads all positions; those that cannot be read are missing in the metadata.
    private mutating func readPositions() {
        guard let bounds = try? reader.bounds(of: .location) else { return }
        var next = bounds.lowerBound
        while next <= bounds.upperBound {
            do {
                let runs = try reader.present(.location, from: next, limit: Self.page)
                guard let last = runs.last else { return }
                for run in runs {
                    next = run.lowerBound
                    try source.forEach(.location, run) { sequence, json in
                        addPosition(RecordMembers(json))
                        next = sequence + 1
                        return true
                    }
                }
                next = last.upperBound + 1
            } catch {
                next += 1
            }
        }
    }

    private mutating func addPosition(_ members: RecordMembers) {
        func number(_ name: String) -> Double? { members[name].flatMap { Double($0) } }
        guard let time = members.text("timestamp").flatMap({ WallTime(rfc3339: $0) }),
            let latitude = number("latitude"), let longitude = number("longitude")
        else { return }
        let place = Recording.Place(
            latitude: latitude,
            longitude: longitude,
            accuracy: number("horizontal_accuracy"),
            altitude: number("altitude")
        )
        positions.add(place, at: time)
    }
}
