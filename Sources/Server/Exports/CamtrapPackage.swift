// `waypost-receiver export camtrap-dp`: the archive's audio as a Camtrap DP package.
import AudioTags
import Glibc
import Host
import ServerArchive
import ServerBase
import ServerIndex

/// The facts about a package that only a person knows.
package struct CamtrapRequest: Sendable {
    package var title: String?
    /// The name of the person or organisation behind it.
    package var contact: String?
    /// True: no audio is copied; `export audio` gives the files the same names.
    package var tablesOnly = false
    /// Waypost's version.
    package var version: String

    package init(version: String) { self.version = version }
}

/// Writes a Camtrap DP 1.0.2 package (camtrap-dp.tdwg.org); changes no archive.
///
/// `datapackage.json` is written last: a folder without it is not a complete package.
package final class CamtrapPackage {
    private struct Device {
        var records: DeviceRecords
        var effort: [EffortInterval]
        var deployments: [Deployment]

        /// Returns the deployment of a time; a time that is not certain may lie in none of them.
        func deployment(at time: Int64) -> Deployment? {
            deployments.last { $0.start <= time } ?? deployments.first
        }
    }

    private static let mediaFolder = "media"

    private let directory: String
    private let request: CamtrapRequest
    private let scope: ExportScope
    private let folder: ExportFolder
    private let devices: [Device]
    private let names: KnownNames
    private let skipped = SkippedRecords()
    private let progress: (String) -> Void
    private var copy: AudioCopy
    private var media: ScienceTable
    private var observations: ScienceTable
    private var failures: ScienceTable
    private var species: Set<String> = []
    private var outcome = ScienceOutcome()

    /// Finds the deployments and creates the output folder.
    ///
    /// Throws a `Failure` if the folder has files, or the position of a device is not known.
    /// `progress` is called with a line for each day of a device.
    package init(
        of directory: String,
        to output: String,
        _ scope: ExportScope,
        _ request: CamtrapRequest,
        progress: @escaping (String) -> Void = { _ in }
    ) throws {
        guard fileSize(ArchiveFiles.index(in: directory)) != nil else {
            throw Failure("no receiver has run on \(directory); set --data to its folder")
        }
        (self.directory, self.scope, self.request) = (directory, scope, request)
        self.progress = progress
        devices = try Self.devices(in: directory, scope, skipped, progress)
        names = try Names(directory: directory).current()
        folder = try ExportFolder(output, data: directory)
        if !request.tablesOnly { try folder.makeFolder(Self.mediaFolder) }
        copy = AudioCopy(directory, folder, prefix: "\(Self.mediaFolder)/", scope.names)
        media = try ScienceTable("media", CamtrapColumns.media, in: folder)
        observations = try ScienceTable("observations", CamtrapColumns.observations, in: folder)
        failures = try ScienceTable("failures", CamtrapColumns.failures, in: folder)
    }

    private static func devices(
        in directory: String,
        _ scope: ExportScope,
        _ skipped: SkippedRecords,
        _ progress: (String) -> Void
    ) throws -> [Device] {
        var (devices, unplaced) = ([Device](), [String]())
        for records in try DeviceRecords.all(in: directory, scope, skipped) {
            progress("\(records.device): reading its records")
            let effort = try records.effort(scope)
            do {
                let deployments = try DeploymentFinder.deployments(of: records, effort, scope)
                guard !deployments.isEmpty else { continue }
                devices.append(Device(records: records, effort: effort, deployments: deployments))
            } catch let error as DeploymentFinder.UnknownPlaceError {
                unplaced.append(error.device)
            }
        }
        guard unplaced.isEmpty else {
            let options = unplaced.map { "--position \($0)=LAT,LON" }.joined(separator: " ")
            throw Failure(
                "no position of \(unplaced.joined(separator: ", ")) is stored for that time, and a "
                    + "deployment needs one; add \(options)"
            )
        }
        guard !devices.isEmpty else {
            throw Failure("no device has audio or effort in that time; nothing was written")
        }
        return devices
    }

    package func run() throws -> ScienceOutcome {
        let deployments = devices.flatMap(\.deployments)
        var table = try ScienceTable("deployments", CamtrapColumns.deployments, in: folder)
        for deployment in deployments {
            try table.add(deployment.row(label: names.label(deployment.device)))
        }
        for device in devices {
            var sounds: [ArchivedAudio] = []
            for date in device.records.dates where scope.mayInclude(date: date) {
                // A recording that begins before midnight may have detections behind it.
                let start = Day(date)?.start ?? 0
                sounds = sounds.filter { $0.chunk.end > start }
                sounds += try writeMedia(of: device, date)
                try writeObservations(of: device, date, sounds)
            }
            try writeFailures(of: device)
        }
        try table.finish()
        for table in [media, observations, failures] { try table.finish() }
        let descriptor = PackageDescriptor(
            request: request,
            deployments: deployments,
            species: species.sorted()
        )
        try folder.write(descriptor.json(), to: "datapackage.json")
        try folder.sync()
        outcome.deployments = deployments.count
        (outcome.observations, outcome.failures) = (observations.rows, failures.rows)
        skipped.add(to: &outcome)
        return outcome
    }

    // MARK: A day

    /// Returns the recordings of the date that the package has.
    private func writeMedia(of device: Device, _ date: String) throws -> [ArchivedAudio] {
        let sounds = try device.records.sounds(on: date, scope)
        if !sounds.isEmpty { progress("\(device.records.device) \(date): \(sounds.count) files") }
        var places = try DevicePlaces(device.records, date, scope)
        var written: [ArchivedAudio] = []
        copy.beginDay()
        for sound in sounds {
            guard let deployment = device.deployment(at: sound.chunk.start) else { continue }
            guard copy.exists(sound) else {
                outcome.missing += 1
                continue
            }
            let recording = places.recording(of: sound)
            let path = copy.name(of: sound, recording)
            // It may be deleted at any time.
            if !request.tablesOnly, try !copy.write(sound, recording, to: path, &outcome) {
                continue
            }
            try addMedia(sound, deployment, path)
            written.append(sound)
        }
        return written
    }

    private func addMedia(_ sound: ArchivedAudio, _ deployment: Deployment, _ path: String) throws {
        try media.add([
            "mediaID": "\(deployment.device)/\(sound.id)", "deploymentID": deployment.id,
            "captureMethod": "timeLapse", "timestamp": CamtrapTime.text(sound.chunk.start),
            "filePath": path, "filePublic": "false",
            "fileName": String(path.dropFirst(Self.mediaFolder.utf8.count + 1)),
            "fileMediatype": AudioChunk.type(sound.type) ?? "audio/ogg",
        ])
    }

    /// Writes the detections of a date: records with a species, as deploy/detectors write them.
    private func writeObservations(
        of device: Device,
        _ date: String,
        _ sounds: [ArchivedAudio]
    ) throws {
        var ids: Set<String> = []
        try device.records.forEach(.detections, on: { $0 == date }) { record, _ in
            guard let (id, time) = record.identity, scope.includes(time), ids.insert(id).inserted,
                let name = record.text("scientific_name") ?? record.text("species"), !name.isEmpty,
                let deployment = device.deployment(at: time)
            else { return }
            let sound = sounds.last { $0.chunk.start <= time && time < $0.chunk.end }
            var row = [
                "observationID": "\(device.records.device)/\(id)", "deploymentID": deployment.id,
                "eventStart": CamtrapTime.text(time),
                "eventEnd": CamtrapTime.end(time + Self.length(of: record)),
                "observationLevel": sound == nil ? "event" : "media",
                "observationType": "animal", "scientificName": name,
                "classificationMethod": "machine",
            ]
            row["mediaID"] = sound.map { "\(device.records.device)/\($0.id)" }
            row["classifiedBy"] = record.text("model")
            row["observationComments"] = record.text("common_name")
            row["classificationProbability"] = record.number("confidence")
                .flatMap { (0...1).contains($0) ? Words.decimal($0, 4) : nil }
            try observations.add(row)
            if species.count < Self.maxSpecies { species.insert(name) }
        }
    }

    private static let maxSpecies = 10_000

    /// Returns a detection's length in milliseconds, 0 if it has none.
    private static func length(of record: RecordLine) -> Int64 {
        let seconds = record.number("duration_s") ?? record.number("duration") ?? 0
        return (0...86_400).contains(seconds) ? Int64(seconds * 1000) : 0
    }

    // MARK: Failures

    /// Writes when the device's sources did not listen and nobody had planned it.
    private func writeFailures(of device: Device) throws {
        for interval in device.effort where interval.isFailure {
            for deployment in device.deployments {
                let from = max(interval.from, deployment.start)
                let to = min(interval.to, deployment.end)
                // To the nearest second: the sum of many short ones stays right.
                let ends = [from, to].map { CamtrapTime.text($0 + 500) }
                guard from < to, ends[0] < ends[1] else { continue }
                try failures.add([
                    "deploymentID": deployment.id, "failureStart": ends[0], "failureEnd": ends[1],
                    "reason": interval.reason.isEmpty ? interval.state : interval.reason,
                    "source": interval.source, "state": interval.state,
                ])
            }
        }
    }
}
