// The JSON encoder of the program: without Foundation, which would make it a quarter larger.

/// Returns a value as one line of JSON, its keys in snake case and sorted.
///
/// NaN and infinity, which JSON cannot express, become null.
package func encodedJSON(_ value: some Encodable) -> [UInt8] {
    let place = JSONPlace()
    guard (try? place.encode(value)) != nil else { return Array("{}".utf8) }
    var json = JSONWriter()
    place.value.write(to: &json)
    return json.bytes
}

/// A node of the tree that `encode(to:)` builds, in one call or in parts.
private final class JSONPlace: Encoder, SingleValueEncodingContainer {
    private enum Kind { case value, array, object }

    private var kind = Kind.object
    private var alone = JSONValue.null
    private var parts: [JSONPlace] = []
    private var members: [String: JSONPlace] = [:]
    /// The members are a dictionary's: their names stay as they are.
    private var isDictionary = false

    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    var value: JSONValue {
        switch kind {
        case .value: alone
        case .array: .array(parts.map(\.value))
        case .object: .object(members.mapValues(\.value))
        }
    }

    var count: Int { parts.count }

    /// Encodes standard types as values; any other type encodes its own parts.
    func encode<Value: Encodable>(_ value: Value) throws {
        switch value {
        case let text as String: put(.text(text))
        case let flag as Bool: put(.flag(flag))
        case let number as any BinaryInteger: put(.number("\(number)"))
        case let number as Double: put(number.isFinite ? .number(Self.digits("\(number)")) : .null)
        case let number as Float: put(number.isFinite ? .number(Self.digits("\(number)")) : .null)
        default:
            isDictionary = value is any NamedByText
            try value.encode(to: self)
        }
    }

    func encodeNil() { put(.null) }

    private func put(_ value: JSONValue) {
        kind = .value
        alone = value
    }

    /// Writes a whole number without a fraction: `2`, not `2.0`.
    private static func digits(_ number: String) -> String {
        number.hasSuffix(".0") ? String(number.dropLast(2)) : number
    }

    func member(_ key: some CodingKey) -> JSONPlace {
        let name = isDictionary ? key.stringValue : snakeCase(key.stringValue)
        let place = members[name] ?? JSONPlace()
        members[name] = place
        return place
    }

    func nextPart() -> JSONPlace {
        parts.append(JSONPlace())
        return parts[parts.count - 1]
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        kind = .object
        return KeyedEncodingContainer(JSONMembers(place: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        kind = .array
        return JSONParts(place: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

private struct JSONMembers<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let place: JSONPlace
    var codingPath: [any CodingKey] { [] }

    func encodeNil(forKey key: Key) { place.member(key).encodeNil() }

    func encode(_ value: some Encodable, forKey key: Key) throws {
        try place.member(key).encode(value)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        place.member(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        place.member(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { place }

    func superEncoder(forKey key: Key) -> any Encoder { place.member(key) }
}

private struct JSONParts: UnkeyedEncodingContainer {
    let place: JSONPlace
    var codingPath: [any CodingKey] { [] }
    var count: Int { place.count }

    func encodeNil() { place.nextPart().encodeNil() }

    func encode(_ value: some Encodable) throws { try place.nextPart().encode(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> {
        place.nextPart().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        place.nextPart().unkeyedContainer()
    }

    func superEncoder() -> any Encoder { place.nextPart() }
}

/// A dictionary with text keys, which are not Swift properties and keep their spelling.
protocol NamedByText {}

extension Dictionary: NamedByText where Key == String {}

/// Converts `lastOk` to `last_ok`, and `myURLText` to `my_url_text`.
func snakeCase(_ name: String) -> String {
    var words = ""
    var last: Character?
    var rest = name[...]
    while let letter = rest.popFirst() {
        // A word begins at a capital after a small letter, and at the last capital before one.
        if letter.isUppercase, let last,
            !last.isUppercase || rest.first?.isLowercase == true, last != "_"
        {
            words.append("_")
        }
        words += letter.lowercased()
        last = letter
    }
    return words
}
