// The side of the command `waypost survey`.
internal import Board
internal import Host
internal import Queue
internal import Streams
internal import Upload

/// Asks the daemon if it runs, else the database under the daemon's own lock.
package struct SurveyClient {
    private let configuration: Configuration
    private let version: String

    package init(_ configuration: Configuration, version: String) {
        self.configuration = configuration
        self.version = version
    }

    /// Throws a Failure that says what to do.
    package func perform(_ request: SurveyRequest) throws -> SurveyReply {
        let path = Gateway.socketPath(configuration)
        if let client = ControlClient(path: path) {
            // The figures of a large survey take their time.
            guard client.send(line: request.line), let line = client.line(timeout: .seconds(600)),
                let reply = SurveyReply(json: line)
            else { throw Failure("\(path): the daemon did not answer; `waypost status` shows it") }
            return try Self.checked(reply)
        }
        return try OfflineQueue.open(configuration, version: version) { queue in
            try Self.checked(SurveyDesk(queue: queue).answer(request))
        }
    }

    private static func checked(_ reply: SurveyReply) throws -> SurveyReply {
        if let error = reply.error { throw Failure(error) }
        return reply
    }

    /// Surveys that are over and still on the device, as on the wire, oldest first.
    ///
    /// Read from the database as it is, with the daemon or without.
    package func finished() throws -> [SurveyRecord] {
        let path = Gateway.databasePath(configuration.stateDirectory)
        do {
            let reader = try Reader(path: path)
            guard let range = try reader.surveyRange() else { return [] }
            var found: [SurveyRecord] = []
            let records = try RecordSource(reader: reader, clockMap: .max)
            try records.forEach(.surveys, range) { _, json in
                if let record = SurveyRecord(json: json) { found.append(record) }
                return true
            }
            return found
        } catch {
            throw Failure("\(path): \(error)")
        }
    }
}

/// The record of a survey, as it is on the wire.
package struct SurveyRecord: Codable, Sendable {
    package struct Place: Codable, Sendable {
        package var latitude: Double
        package var longitude: Double
    }

    package struct Track: Codable, Sendable {
        package var fixes: Int
        package var distance: Double?
        package var first: Place?
        package var last: Place?
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
    package var otherSightings: Int?
    package var track: Track
    package var beacons: [Beacon]
    /// As it is on the wire.
    package private(set) var json: [UInt8] = []

    private enum CodingKeys: CodingKey {
        case id, name, start, end, sightings, missingSightings, otherSightings, track, beacons
    }

    init?(json: [UInt8]) {
        guard var record = try? JSONInput.decode(Self.self, from: json, snakeCase: true) else {
            return nil
        }
        record.json = json
        self = record
    }
}
