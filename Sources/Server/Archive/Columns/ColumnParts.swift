// The members of a column as they were received.
import Host
import JSON
import ServerBase

/// The parts of a column; at its end `form` checks that they belong together.
struct ColumnParts {
    /// The last digits of an id, which are hexadecimal, and how many numbers they have.
    static let idDigits = 12
    static let idNumbers: Int64 = 1 << 48
    private static let mostDecimals: Int64 = 15

    private var names: Set<String> = []
    /// The value of `const`, `time` or `id`.
    private var value = 0..<0
    /// The values of `values` or `of`.
    private var values: [Range<Int>] = []
    /// The numbers of `at`, `steps` or `ms`.
    private var numbers: [Int64] = []
    private var first: Int64 = 0
    private var scale: Int64 = 0
    /// The runs of `has`, each with its first record and its length.
    private var spans: [Int64] = []

    /// Reads a member; throws `RecordError` or `BodyError`.
    mutating func read(_ name: Range<Int>, _ text: inout BodyJSON) throws {
        let name = JSONString.read(text.bytes, name) ?? ""
        guard names.insert(name).inserted else {
            throw RecordError(reason: "a part is there twice")
        }
        switch name {
        case "const", "time", "id": value = try text.value()
        case "values", "of":
            try Self.list(&text) { self.values.append(try $0.value()) }
        case "at", "steps", "ms":
            try Self.list(&text) { self.numbers.append(try Self.integer(&$0)) }
        case "from": first = try Self.integer(&text)
        case "scale": scale = try Self.integer(&text)
        case "has": try Self.list(&text) { try self.readRun(&$0) }
        default: throw RecordError(reason: "an unknown part")
        }
    }

    /// Returns the records that have the member; nil: all.
    func runs() throws -> [(first: Int64, length: Int64)]? {
        guard names.contains("has") else { return nil }
        return stride(from: 0, to: spans.count, by: 2).map { (spans[$0], spans[$0 + 1]) }
    }

    /// Checks each run at once: a list of a million wrong ones must cost no memory.
    private mutating func readRun(_ text: inout BodyJSON) throws {
        let (count, wrong) = (spans.count, RecordError(reason: "has is not of runs"))
        try Self.list(&text) { text in
            guard self.spans.count < count + 2 else { throw wrong }
            self.spans.append(try Self.integer(&text))
        }
        guard spans.count == count + 2, spans[count] >= 0 else { throw wrong }
    }

    /// Returns the form; throws `RecordError` if the parts are not those of one.
    func form(in bytes: ByteView) throws -> IncomingColumn.Form {
        switch names.subtracting(["has"]) {
        case ["const"]: return .constant(value)
        case ["values"]: return .values(values)
        case ["of", "at"]: return .choice(values, at: numbers)
        case ["from", "steps"], ["from", "steps", "scale"]:
            guard (0...Self.mostDecimals).contains(scale) else { break }
            return .numbers(first: first, steps: numbers, decimals: Int(scale))
        case ["time", "ms"]:
            guard let text = string(bytes), let time = WallTime(rfc3339: text),
                time.rfc3339 == text
            else { throw RecordError(reason: "time is not RFC 3339 with milliseconds and Z") }
            return .times(first: time.milliseconds, steps: numbers)
        case ["id", "steps"]:
            let end = value.upperBound - 1
            let digits = String(decoding: bytes[max(0, end - Self.idDigits)..<end], as: UTF8.self)
            guard let text = string(bytes), text.utf8.count == value.count - 2,
                text.hasSuffix(digits), digits.utf8.count == Self.idDigits,
                digits.allSatisfy({ $0.isHexDigit && !$0.isUppercase }),
                let first = Int64(digits, radix: 16)
            else { throw RecordError(reason: "id does not end with 12 hexadecimal digits") }
            let prefix = value.lowerBound..<(end - Self.idDigits)
            return .ids(prefix: prefix, first: first, steps: numbers)
        default: break
        }
        throw RecordError(reason: "its parts are not those of a column")
    }

    private func string(_ bytes: ByteView) -> String? {
        guard bytes[value.lowerBound] == UInt8(ascii: "\"") else { return nil }
        return JSONString.read(bytes, value)
    }

    // MARK: Values

    private static func list(
        _ text: inout BodyJSON,
        _ element: (inout BodyJSON) throws -> Void
    ) throws {
        guard text.next() == UInt8(ascii: "[") else {
            throw RecordError(reason: "a part is no list")
        }
        try text.array(element)
    }

    /// Reads an integer without fraction and exponent.
    static func integer(_ text: inout BodyJSON) throws -> Int64 {
        let range = try text.value()
        guard range.count <= 20,
            let number = Int64(String(decoding: text.bytes[range], as: UTF8.self))
        else { throw RecordError(reason: "not an integer of 64 bits") }
        return number
    }
}
