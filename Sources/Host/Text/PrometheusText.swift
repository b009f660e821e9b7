// Writes Prometheus' text format (version 0.0.4).

/// A text of metric families.
package struct PrometheusText {
    package typealias Sample = (labels: KeyValuePairs<String, String>, value: Double)

    package enum Kind: String {
        case counter
        case gauge
    }

    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private let prefix: String
    package private(set) var text = ""

    /// `prefix`: the begin of every family's name.
    package init(prefix: String) { self.prefix = prefix }

    /// Adds a family without labels.
    package mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        let none: KeyValuePairs<String, String> = [:]
        add(name, kind, help, [(none, value)])
    }

    /// Adds a family with a sample for each set of labels; nothing without samples.
    package mutating func add(
        _ name: String,
        _ kind: Kind,
        _ help: String,
        _ samples: [Sample]
    ) {
        guard !samples.isEmpty else { return }
        text += "# HELP \(prefix)\(name) \(help)\n# TYPE \(prefix)\(name) \(kind.rawValue)\n"
        for (labels, value) in samples {
            let pairs = labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
            let number = Int64(exactly: value).map { "\($0)" } ?? "\(value)"
            text += "\(prefix)\(name)\(pairs.isEmpty ? "" : "{\(pairs)}") \(number)\n"
        }
    }

    private static func escaped(_ text: String) -> String {
        text.replacing(text: "\\", with: "\\\\").replacing(text: "\"", with: "\\\"")
            .replacing(text: "\n", with: "\\n")
    }
}
