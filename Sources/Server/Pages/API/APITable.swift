// Writes the rows of an answer as JSON or CSV.
import Host
import JSON
import ServerWeb

/// A page of rows, written as they are added, so that no row is kept.
struct APITable {
    enum Cell {
        case text(String)
        case number(Double)
        case integer(Int64)
        /// Milliseconds since 1970.
        case time(Int64)
        case list([String])
        /// A JSON object.
        case object(String)
        /// Not reported.
        case none
    }

    /// Bytes; a page ends when it has become larger.
    private static let maxBytes = 4 << 20

    let resource: APIResource
    let isCSV: Bool
    private let limit: Int64
    private(set) var count: Int64 = 0
    /// The rows, or one list per column.
    private var parts: [JSONWriter]
    private var csv: [UInt8] = []

    init(_ resource: APIResource, isCSV: Bool, limit: Int64) {
        (self.resource, self.isCSV, self.limit) = (resource, isCSV, limit)
        let isColumnar = resource.isColumnar
        parts = (0..<(isColumnar ? resource.columns.count : 1)).map { _ in JSONWriter() }
        if isCSV { addLine(resource.columns.map(\.name)) }
    }

    var isFull: Bool {
        count >= limit || csv.count + parts.reduce(0) { $0 + $1.bytes.count } >= Self.maxBytes
    }

    /// Adds a row; `cells` are in the order of the resource's columns.
    mutating func add(_ cells: [Cell]) {
        count += 1
        if isCSV {
            addLine(cells.map(\.plain))
        } else if resource.isColumnar {
            for (index, cell) in cells.enumerated() { cell.write(to: &parts[index]) }
        } else {
            parts[0].object { Self.write(cells, of: resource, to: &$0) }
        }
    }

    /// Writes a row's members, without those that are not reported.
    static func write(_ cells: [Cell], of resource: APIResource, to json: inout JSONWriter) {
        for (column, cell) in zip(resource.columns, cells) {
            if case .none = cell { continue }
            json.key(column.name)
            cell.write(to: &json)
        }
    }

    /// Returns the answer's bytes.
    ///
    /// `next`: the cursor of the next page; `note`: a warning about the data.
    func bytes(next: String?, note: String?) -> [UInt8] {
        guard !isCSV else { return csv }
        var json = JSONWriter()
        json.object { json in
            json.key("data")
            if resource.isColumnar {
                json.object { json in
                    for (column, part) in zip(resource.columns, parts) {
                        json.key(column.name)
                        json.array { $0.append(part.bytes) }
                    }
                }
            } else {
                json.array { $0.append(parts[0].bytes) }
            }
            if let next { json.field("next", next) }
            if let note { json.field("note", note) }
        }
        return json.bytes + [10]
    }

    /// Adds a line as RFC 4180 has it.
    private mutating func addLine(_ texts: [String]) {
        for (index, text) in texts.enumerated() {
            if index > 0 { csv.append(UInt8(ascii: ",")) }
            csv += csvCell(text).utf8
        }
        csv += [13, 10]
    }
}

extension APITable.Cell {
    init(_ text: String?) { self = text.map { .text($0) } ?? .none }

    init(_ number: Double?) { self = number.map { .number($0) } ?? .none }

    init(time: Int64?) { self = time.map { .time($0) } ?? .none }

    fileprivate var plain: String {
        switch self {
        case .text(let text), .object(let text): text
        case .number(let number): number.shortest
        case .integer(let number): "\(number)"
        case .time(let time): WallTime(milliseconds: time).rfc3339
        case .list(let texts): texts.joined(separator: "; ")
        case .none: ""
        }
    }

    func write(to json: inout JSONWriter) {
        switch self {
        case .text(let text): json.value(text)
        case .time: json.value(plain)
        case .number, .integer, .object: json.raw(plain)
        case .list(let texts): json.array { for text in texts { $0.value(text) } }
        case .none: json.raw("null")
        }
    }
}

extension Double {
    /// The shortest JSON number with this value: `21`, `-0.5`, `1e+20`.
    var shortest: String {
        abs(self) < 1e15 && rounded() == self ? "\(Int64(self))" : "\(self)"
    }
}
