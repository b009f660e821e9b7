// The tables of a Camtrap DP package as CSV files.
import Host
import ServerBase

/// A table of a package while it is written.
struct ScienceTable {
    /// Characters; a device may send longer texts.
    private static let longestCell = 1000

    private let columns: [String]
    private let file: ExportedFile
    private(set) var rows = 0

    init(_ name: String, _ columns: [String], in folder: ExportFolder) throws {
        self.columns = columns
        file = try ExportedFile("\(name).csv", in: folder)
        try file.append(Self.line(columns))
    }

    /// Adds a row; the cells of columns without a value are empty.
    mutating func add(_ values: [String: String]) throws {
        rows += 1
        try file.append(Self.line(columns.map { values[$0] ?? "" }))
    }

    func finish() throws { try file.finish() }

    /// Returns a line of CSV (RFC 4180, section 2), without control characters.
    private static func line(_ cells: [String]) -> [UInt8] {
        let quoted = cells.map { csvCell(printable($0, limit: longestCell)) }
        return Array((quoted.joined(separator: ",") + "\n").utf8)
    }
}

/// The columns of Camtrap DP 1.0.2 (tdwg/camtrap-dp, `*-table-schema.json`).
enum CamtrapColumns {
    static let deployments = [
        "deploymentID", "locationID", "locationName", "latitude", "longitude",
        "coordinateUncertainty", "deploymentStart", "deploymentEnd", "setupBy", "cameraID",
        "cameraModel", "cameraDelay", "cameraHeight", "cameraDepth", "cameraTilt", "cameraHeading",
        "detectionDistance", "timestampIssues", "baitUse", "featureType", "habitat",
        "deploymentGroups", "deploymentTags", "deploymentComments",
    ]
    static let media = [
        "mediaID", "deploymentID", "captureMethod", "timestamp", "filePath", "filePublic",
        "fileName", "fileMediatype", "exifData", "favorite", "mediaComments",
    ]
    static let observations = [
        "observationID", "deploymentID", "mediaID", "eventID", "eventStart", "eventEnd",
        "observationLevel", "observationType", "cameraSetupType", "scientificName", "count",
        "lifeStage", "sex", "behavior", "individualID", "individualPositionRadius",
        "individualPositionAngle", "individualSpeed", "bboxX", "bboxY", "bboxWidth", "bboxHeight",
        "classificationMethod", "classifiedBy", "classificationTimestamp",
        "classificationProbability", "observationTags", "observationComments",
    ]
    /// Our own.
    static let failures = [
        "deploymentID", "failureStart", "failureEnd", "reason", "source", "state",
    ]
}

/// Times as the tables have them: `%Y-%m-%dT%H:%M:%S%z`, without fractions.
enum CamtrapTime {
    /// Returns the second in which a time is.
    static func text(_ milliseconds: Int64) -> String {
        WallTime(milliseconds: milliseconds).rfc3339.prefix(19) + "Z"
    }

    /// Returns the first whole second that is not before a time.
    static func end(_ milliseconds: Int64) -> String { text(milliseconds + 999) }
}

extension Deployment {
    /// Its row; `label`: the name that people gave the device.
    func row(label: String?) -> [String: String] {
        var row = [
            "deploymentID": id, "locationName": label ?? device, "cameraID": device,
            "latitude": Words.decimal(place.latitude, 7),
            "longitude": Words.decimal(place.longitude, 7),
            "deploymentStart": CamtrapTime.text(start),
            "deploymentEnd": isLast ? CamtrapTime.end(end) : CamtrapTime.text(end),
            "cameraModel": "Waypost", "deploymentComments": settings,
            "timestampIssues": hasClockIssue ? "true" : "false",
        ]
        row["coordinateUncertainty"] = uncertainty.map(String.init)
        return row
    }
}
