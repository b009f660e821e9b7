// The JSON decoder, without Foundation, whose decoder crashes on some malformed names in Swift 6.0.

package enum JSONInput {
    /// Decodes a value; throws `JSONError` for malformed JSON and DecodingError for another type.
    ///
    /// `snakeCase`: the names in the text are `in_snake_case`.
    package static func decode<Value: Decodable>(
        _ type: Value.Type = Value.self,
        from bytes: [UInt8],
        snakeCase: Bool = false
    ) throws -> Value {
        try JSONSource(value: JSONValue(bytes), inSnakeCase: snakeCase).decode(type)
    }
}

/// A node of the JSON tree that `init(from:)` reads, in one call or in parts.
private struct JSONSource: Decoder, SingleValueDecodingContainer {
    let value: JSONValue
    let inSnakeCase: Bool
    /// The members are a dictionary's: their names stay as they are.
    var isDictionary = false

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// Decodes standard types from values; any other type decodes its own parts.
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let read: Any?
        switch (value, type) {
        case (.text(let text), is String.Type): read = text
        case (.flag(let flag), is Bool.Type): read = flag
        case (.number(let digits), let type as any FixedWidthInteger.Type):
            read = Self.integer(type, digits)
        case (.number(let digits), is Double.Type): read = Double(digits)
        case (.number(let digits), is Float.Type): read = Float(digits)
        case (_, is String.Type), (_, is Bool.Type), (_, is any Numeric.Type): read = nil
        default:
            var source = self
            source.isDictionary = type is any NamedByText.Type
            return try type.init(from: source)
        }
        guard let read = read as? Value else { throw other(than: type) }
        return read
    }

    /// Converts digits to an integer; `2.0` and `2e3` are accepted too.
    private static func integer<Number: FixedWidthInteger>(
        _ type: Number.Type,
        _ digits: String
    ) -> Number? {
        Number(digits) ?? Double(digits).flatMap { Number(exactly: $0) }
    }

    func other(than type: Any.Type) -> DecodingError {
        .typeMismatch(type, .init(codingPath: [], debugDescription: "this is \(value)"))
    }

    /// Returns the name of the member for a key.
    func name(_ key: some CodingKey) -> String {
        inSnakeCase && !isDictionary ? snakeCase(key.stringValue) : key.stringValue
    }

    func part(_ value: JSONValue) -> JSONSource {
        JSONSource(value: value, inSnakeCase: inSnakeCase)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let members) = value else { throw other(than: [String: Any].self) }
        return KeyedDecodingContainer(DecodedMembers(source: self, members: members))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let parts) = value else { throw other(than: [Any].self) }
        return DecodedElements(parts: parts.map(part))
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { value == .null }
}

private struct DecodedMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let source: JSONSource
    let members: [String: JSONValue]
    var codingPath: [any CodingKey] { [] }
    /// The names as keys; a dictionary needs them to decode itself.
    var allKeys: [Key] { members.keys.compactMap(Key.init(stringValue:)) }

    private func member(_ key: Key) throws -> JSONSource {
        guard let member = members[source.name(key)] else {
            throw DecodingError.keyNotFound(key, .init(codingPath: [], debugDescription: ""))
        }
        return source.part(member)
    }

    func contains(_ key: Key) -> Bool { members[source.name(key)] != nil }

    func decodeNil(forKey key: Key) throws -> Bool { try member(key).value == .null }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try member(key).decode(type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try member(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try member(key).unkeyedContainer()
    }

    func superDecoder() -> any Decoder { source }

    func superDecoder(forKey key: Key) throws -> any Decoder { try member(key) }
}

private struct DecodedElements: UnkeyedDecodingContainer {
    let parts: [JSONSource]
    private(set) var currentIndex = 0
    var codingPath: [any CodingKey] { [] }
    var count: Int? { parts.count }
    var isAtEnd: Bool { currentIndex == parts.count }

    private mutating func next() throws -> JSONSource {
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                JSONValue.self,
                .init(codingPath: [], debugDescription: "the array has \(parts.count) values")
            )
        }
        defer { currentIndex += 1 }
        return parts[currentIndex]
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, parts[currentIndex].value == .null else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try next().decode(type)
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next().unkeyedContainer()
    }

    mutating func superDecoder() throws -> any Decoder { try next() }
}
