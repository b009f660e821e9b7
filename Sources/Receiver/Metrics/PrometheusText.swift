// Writes Prometheus' text format (version 0.0.4).

/// A text of metric families.
struct PrometheusText {
    enum Kind: String {
        case counter
        case gauge
    }

    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private let prefix: String
    private(set) var text = ""

    init(prefix: String) { self.prefix = prefix }

    /// Adds a family without labels.
    mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        begin(name, kind, help)
        text += "\(prefix)\(name) \(value)\n"
    }

    /// Adds a family with a sample for each value of a label.
    mutating func add(
        _ name: String,
        _ kind: Kind,
        _ help: String,
        _ samples: [(label: String, text: String, value: Double)]
    ) {
        begin(name, kind, help)
        for sample in samples {
            let quoted = Self.escaped(sample.text)
            text += "\(prefix)\(name){\(sample.label)=\"\(quoted)\"} \(sample.value)\n"
        }
    }

    private mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
        text += "# HELP \(prefix)\(name) \(help)\n# TYPE \(prefix)\(name) \(kind.rawValue)\n"
    }

    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            switch character {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.append(character)
            }
        }
    }
}
