// `datapackage.json` of a Camtrap DP package.
import Foundation
import Host

/// The metadata of a package (Data Package 1.0, with the Camtrap DP 1.0.2 profile).
struct PackageDescriptor {
    private static let base = "https://raw.githubusercontent.com/tdwg/camtrap-dp/1.0.2"

    let request: CamtrapRequest
    let deployments: [Deployment]
    let species: [String]
    var now = SystemClock().wall()

    func json() throws -> [UInt8] {
        let title = request.title ?? "Waypost recordings"
        let software = "waypost-receiver \(request.version)"
        let contributor: [String: Any] =
            request.contact.map { ["title": $0, "role": "contact"] }
            ?? ["title": software, "role": "contributor"]
        let package: [String: Any] = [
            "profile": "\(Self.base)/camtrap-dp-profile.json",
            "name": "waypost-recordings", "title": title, "created": now.rfc3339,
            "contributors": [contributor],
            "sources": [["title": "Waypost", "version": request.version]],
            "project": [
                "title": title, "samplingDesign": "opportunistic", "captureMethod": ["timeLapse"],
                "individualAnimals": false, "observationLevel": ["media", "event"],
            ],
            "spatial": spatial, "temporal": temporal,
            "taxonomic": species.map { ["scientificName": $0] },
            "resources": ["deployments", "media", "observations"].map(Self.resource)
                + [Self.failures],
        ]
        let options: JSONSerialization.WritingOptions = [
            .prettyPrinted, .sortedKeys, .withoutEscapingSlashes,
        ]
        return try [UInt8](JSONSerialization.data(withJSONObject: package, options: options)) + [10]
    }

    /// The places of all deployments, as GeoJSON.
    private var spatial: [String: Any] {
        let places = Set(deployments.map { [$0.place.longitude, $0.place.latitude] })
        return [
            "type": "MultiPoint", "coordinates": places.sorted { $0.lexicographicallyPrecedes($1) },
        ]
    }

    private var temporal: [String: String] {
        func date(_ time: Int64?) -> String {
            String(WallTime(milliseconds: time ?? 0).rfc3339.prefix(10))
        }
        return [
            "start": date(deployments.map(\.start).min()),
            "end": date(deployments.map(\.end).max()),
        ]
    }

    private static func resource(_ name: String) -> [String: Any] {
        [
            "name": name, "path": "\(name).csv", "profile": "tabular-data-resource",
            "format": "csv", "mediatype": "text/csv", "encoding": "utf-8",
            "schema": "\(base)/\(name)-table-schema.json",
        ]
    }

    /// Times without recordings that nobody planned, from `waypost_effort`.
    private static var failures: [String: Any] {
        let time = "%Y-%m-%dT%H:%M:%S%z"
        let states = ["failed", "off", "unknown"]
        let fields: [[String: Any]] = [
            ["name": "deploymentID", "type": "string", "constraints": ["required": true]],
            [
                "name": "failureStart", "type": "datetime", "format": time,
                "constraints": ["required": true],
            ],
            [
                "name": "failureEnd", "type": "datetime", "format": time,
                "constraints": ["required": true],
            ],
            ["name": "reason", "type": "string", "constraints": ["required": true]],
            ["name": "source", "type": "string", "constraints": ["required": true]],
            [
                "name": "state", "type": "string",
                "constraints": ["required": true, "enum": states] as [String: Any],
            ],
        ]
        var resource = resource("failures")
        resource["schema"] =
            [
                "fields": fields,
                "foreignKeys": [
                    [
                        "fields": "deploymentID",
                        "reference": ["resource": "deployments", "fields": "deploymentID"],
                    ] as [String: Any]
                ],
            ] as [String: Any]
        return resource
    }
}
