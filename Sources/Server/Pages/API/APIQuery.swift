// Reads the parameters of a request to the read API.
import Foundation
import Host
import ServerBase
package import ServerWeb

/// A span of time; nil: open.
package struct TimeSpan {
    /// Milliseconds since 1970.
    package var from: Int64?
    /// Not part of the span.
    package var to: Int64?

    package func contains(_ time: Int64) -> Bool { time >= from ?? .min && time < to ?? .max }

    /// The first and the last date with a part of it.
    var dates: (first: String, last: String) {
        (from.map { Day(of: $0).name } ?? "", to.map { Day(of: $0 - 1).name } ?? "9999-12-31")
    }
}

package struct APIQuery {
    private let values: [String: String]
    package let path: String
    /// True if the answer is CSV.
    let isCSV: Bool

    /// Throws an HTTPError for parameters that the resource does not have.
    package init(_ head: RequestHead, of resource: APIResource) throws {
        (values, path) = (head.query, head.path)
        let names = resource.parameters.map(\.rawValue)
        if let wrong = head.query.keys.sorted().first(where: { !names.contains($0) }) {
            let reason =
                "no parameter \(Self.shown(wrong)) here; there are: \(names.joined(separator: ", "))"
            throw HTTPError(status: 400, reason: reason)
        }
        let accept = head.fields[.accept]?.lowercased() ?? ""
        isCSV =
            switch head.query["format"] {
            case "csv": true
            case "json": false
            case nil: accept.contains("text/csv")
            case let other?: throw Self.wrong(.format, other, "json or csv")
            }
    }

    private static func shown(_ text: String) -> String {
        "\"\(text.prefix(60))\(text.count > 60 ? "…" : "")\""
    }

    static func wrong(_ name: APIParameter, _ value: String, _ wanted: String) -> HTTPError {
        HTTPError(status: 400, reason: "\(name.rawValue)=\(shown(value)): expected \(wanted)")
    }

    /// Nil if it is absent.
    package func text(_ name: APIParameter) -> String? { values[name.rawValue] }

    /// Nil if it is absent; throws an HTTPError if it is not the name of a stream.
    package func stream() throws -> String? {
        guard let stream = text(.stream) else { return nil }
        guard isName(stream) else { throw Self.wrong(.stream, stream, "the name of a stream") }
        return stream
    }

    package func integer(_ name: APIParameter, usual: Int64, in range: ClosedRange<Int64>) throws
        -> Int64
    {
        guard let text = text(name) else { return usual }
        guard text.utf8.allSatisfy(\.isDigit), let number = Int64(text), range.contains(number)
        else {
            let wanted = "a number from \(range.lowerBound) to \(range.upperBound)"
            throw Self.wrong(name, text, wanted)
        }
        return number
    }

    package func limit() throws -> Int64 {
        try integer(.limit, usual: APIParameter.usualRows, in: 1...APIParameter.maxRows)
    }

    func span() throws -> TimeSpan {
        let span = TimeSpan(from: try time(.from), to: try time(.to))
        if let from = span.from, let to = span.to, from >= to {
            throw HTTPError(status: 400, reason: "from has to be before to")
        }
        return span
    }

    private func time(_ name: APIParameter) throws -> Int64? {
        guard let text = text(name) else { return nil }
        if let day = Day(text) { return day.start }
        // In a query, an unescaped + is a blank.
        let written = text.map { $0 == " " ? "+" : $0 }
        guard text.utf8.count <= 64, let time = WallTime(rfc3339: String(written)) else {
            throw Self.wrong(name, text, "RFC 3339, such as 2026-11-21T04:30:00Z, or a day")
        }
        return time.milliseconds
    }

    // MARK: Pages

    /// Returns the parts of the cursor, nil without one.
    func cursor(_ count: Int) throws -> [String]? {
        guard let text = text(.cursor) else { return nil }
        let written = text.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        let padding = String(repeating: "=", count: (4 - written.count % 4) % 4)
        guard text.utf8.count <= 400, let data = Data(base64Encoded: String(written) + padding),
            let plain = String(data: data, encoding: .utf8)
        else { throw Self.badCursor }
        let parts = plain.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == count else { throw Self.badCursor }
        return parts
    }

    static var badCursor: HTTPError {
        HTTPError(
            status: 400,
            reason: "cursor is not the next of a page of this resource; start without it"
        )
    }

    static func cursor(_ parts: [String]) -> String {
        base64URL(Array(parts.joined(separator: "/").utf8))
    }

    /// Returns the address of the next page.
    package func address(next cursor: String) -> String {
        let pairs = values.merging(["cursor": cursor]) { $1 }.sorted { $0.key < $1.key }.map {
            "\($0.key)=\(FormField.written($0.value))"
        }
        return "\(path)?\(pairs.joined(separator: "&"))"
    }
}
