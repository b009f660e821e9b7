// The records of finished surveys.
import Host
import JSON
import Queue
import Records
import Setup
import Upload

extension QueueQuestions {
    /// Returns the finished surveys that are still on the device, oldest first.
    ///
    /// Reads the database directly, whether the daemon runs or not.
    package func finishedSurveys() throws -> [SurveyRecord] {
        guard hasRecorded else { return [] }
        let path = configuration.databasePath
        do {
            let reader = try Reader(path: path)
            var found: [SurveyRecord] = []
            let records = try RecordSource(reader: reader, clockMap: .max)
            // Some may have been dropped or evicted.
            for number in try reader.present(.surveys, from: 1, limit: .max).joined() {
                do {
                    try records.forEach(.surveys, number...number) { _, json in
                        if let record = SurveyRecord(json: json) { found.append(record) }
                        return true
                    }
                } catch is RecordMissingError {
                    // It was deleted just now.
                    continue
                }
            }
            return found
        } catch {
            throw Failure("\(path): \(error)")
        }
    }
}

/// The record of a survey, as on the wire.
package struct SurveyRecord: Codable, Sendable {
    package struct Track: Codable, Sendable {
        package var fixes: Int
        package var distance: Double?
    }

    package struct Beacon: Codable, Sendable {
        package var kind: String
        package var beaconId: String
        package var count: Int
        package var rssiMean: Double?
        package var rssiMedian: Double?
        package var rssiStddev: Double?
        package var rssiMin: Int?
        package var rssiMax: Int?
        package var longestGap: Double
        package var positioned: Int
    }

    package var id: String
    package var name: String
    package var start: String
    package var end: String
    package var sightings: Int
    package var missingSightings: Int?
    package var track: Track
    package var beacons: [Beacon]
    /// The JSON text on the wire.
    package private(set) var json: [UInt8] = []

    private enum CodingKeys: CodingKey {
        case id, name, start, end, sightings, missingSightings, track, beacons
    }

    init?(json: [UInt8]) {
        guard var record = try? JSONInput.decode(Self.self, from: json, snakeCase: true) else {
            return nil
        }
        record.json = json
        self = record
    }
}
