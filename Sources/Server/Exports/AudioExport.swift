// `waypost-receiver export audio`: the archive's audio with names and metadata for science.
import AudioTags
import Glibc
import Host
import ServerArchive
import ServerBase
import ServerIndex

/// Copies audio files of an archive, with names and metadata for science; changes no archive.
package struct AudioExport {
    private let directory: String
    private let scope: ExportScope
    private let folder: ExportFolder
    private let progress: (String) -> Void

    /// Creates the output folder; throws a `Failure` if it has files.
    ///
    /// `progress` is called with a line for each day of a device.
    package init(
        of directory: String,
        to output: String,
        _ scope: ExportScope,
        progress: @escaping (String) -> Void = { _ in }
    ) throws {
        guard fileSize(ArchiveFiles.index(in: directory)) != nil else {
            throw Failure("no receiver has run on \(directory); set --data to its folder")
        }
        (self.directory, self.scope, self.progress) = (directory, scope, progress)
        folder = try ExportFolder(output, data: directory)
    }

    package func run() throws -> ScienceOutcome {
        var (outcome, copy) = (
            ScienceOutcome(), AudioCopy(directory, folder, prefix: "", scope.names)
        )
        let skipped = SkippedRecords()
        var all = 0
        for records in try DeviceRecords.all(in: directory, scope, skipped) {
            for date in records.dates where scope.mayInclude(date: date) {
                let sounds = try records.sounds(on: date, scope)
                guard !sounds.isEmpty else { continue }
                progress("\(records.device) \(date): \(sounds.count) files")
                var places = try DevicePlaces(records, date, scope)
                copy.beginDay()
                all += sounds.count
                for sound in sounds {
                    let name = copy.name(of: sound, places.recording(of: sound))
                    try copy.write(sound, places.recording(of: sound), to: name, &outcome)
                }
            }
        }
        let told = outcome.files + outcome.missing + outcome.unreadable
        invariant(told == all, "each recording is written, missing or unreadable")
        try folder.sync()
        skipped.add(to: &outcome)
        return outcome
    }
}

/// Where a device was on a date, and what it ran.
struct DevicePlaces {
    private let device: String
    private let firmware: String?
    private let given: SitePlace?
    private let offsetMinutes: Int
    private var log: PositionLog

    init(_ records: DeviceRecords, _ date: String, _ scope: ExportScope) throws {
        device = records.device
        firmware = try records.firmware(on: date)
        (given, offsetMinutes) = (scope.positions[device], scope.offsetMinutes)
        log = given == nil ? try records.positions(around: date) : PositionLog()
    }

    mutating func recording(of sound: ArchivedAudio) -> Recording {
        let start = WallTime(milliseconds: sound.chunk.start)
        let place = given.map {
            Recording.Place(latitude: $0.latitude, longitude: $0.longitude)
        }
        var recording = sound.recording(of: device, at: place ?? log.place(at: start), firmware)
        recording.offsetMinutes = offsetMinutes
        return recording
    }
}

/// Copies audio files with names and metadata for science.
struct AudioCopy {
    private let directory: String
    private let folder: ExportFolder
    /// The folder of the files in the output folder, with a slash at its end; or empty.
    private let prefix: String
    private let style: FileNames
    private var names: UsedNames

    init(_ directory: String, _ folder: ExportFolder, prefix: String, _ style: FileNames) {
        (self.directory, self.folder, self.prefix) = (directory, folder, prefix)
        (self.style, names) = (style, UsedNames(style))
    }

    /// Forgets the names of another device's or day's files, which differ from the next ones.
    mutating func beginDay() { names = UsedNames(style) }

    /// Returns a new file's name.
    mutating func name(of sound: ArchivedAudio, _ recording: Recording) -> String {
        prefix + names.name(of: recording, type: sound.type)
    }

    /// Returns whether the archive still has a record's file.
    func exists(_ sound: ArchivedAudio) -> Bool {
        fileKind("\(directory)/\(sound.path)") == S_IFREG
    }

    /// Writes the file.
    ///
    /// Returns false and counts it if it was deleted, or cannot be read.
    @discardableResult
    func write(
        _ sound: ArchivedAudio,
        _ recording: Recording,
        to name: String,
        _ outcome: inout ScienceOutcome
    ) throws -> Bool {
        let found: [UInt8]?
        do { found = try read(sound.path) } catch {
            outcome.unreadable += 1
            outcome.firstUnreadable = outcome.firstUnreadable ?? sound.path
            return false
        }
        guard let bytes = found else {
            outcome.missing += 1
            return false
        }
        let file = TaggedFile.tagged(bytes, type: sound.type, recording.guano)
        try folder.write(file, to: name, modified: recording.start)
        outcome.files += 1
        outcome.bytes += Int64(file.count)
        return true
    }

    /// Reads a file of the archive; nil if there is none.
    ///
    /// A server stores files of 1 GiB at most.
    private func read(_ path: String) throws -> [UInt8]? {
        do throws(SystemError) {
            let limit = 1 << 30
            let file = try SmallFile.read("\(directory)/\(path)", limit: limit, followsLink: false)
            return file.isRegular && file.bytes.count <= limit ? file.bytes : nil
        } catch {
            guard error.code != ENOENT, error.code != ELOOP else { return nil }
            throw Failure("\(error)")
        }
    }
}
