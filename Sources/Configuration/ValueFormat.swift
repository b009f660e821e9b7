// Formats of values: parsed from the file or the environment, written as TOML.
package import Host

extension MismatchError {
    /// Describes a value of the wrong type.
    package init(found literal: Literal) {
        self.init("found \(literal.found)")
    }
}

/// One kind of value: its description, parser and writer.
package struct ValueFormat<Value: Sendable>: Sendable {
    package var allowed: String
    package var read: @Sendable (Literal) -> Result<Value, MismatchError>
    /// Returns the value as TOML.
    package var written: @Sendable (Value) -> String
    /// Returns true if a value names a file or folder of the device, which a card or a stick cannot
    /// set.
    package var namesFile: @Sendable (Value) -> Bool = { _ in false }

    package init(
        allowed: String,
        read: @escaping @Sendable (Literal) -> Result<Value, MismatchError>,
        written: @escaping @Sendable (Value) -> String
    ) {
        (self.allowed, self.read, self.written) = (allowed, read, written)
    }
}

extension Literal {
    /// The value, for a message.
    var found: String {
        switch self {
        case .string(let text), .unquoted(let text): "the text \"\(printable(text))\""
        case .integer(let value): "the integer \(value)"
        case .number(let value): "the number \(value)"
        case .boolean(let value): "\(value)"
        case .strings: "an array of texts"
        case .table: "a section"
        case .other(let name): name
        case .member(_, let value): value.found
        }
    }

    /// The kind of value, for a message about a value that may be a secret.
    package var foundKind: String {
        switch self {
        case .string, .unquoted: "a text"
        case .integer: "an integer"
        case .number: "a number"
        case .boolean: "true or false"
        case .member(_, let value): value.foundKind
        case .strings, .table, .other: found
        }
    }

    /// The text; nil for any other kind.
    package var text: String? {
        switch self {
        case .string(let text), .unquoted(let text): text
        default: nil
        }
    }
}

/// Returns `text` as a TOML basic string.
package func tomlString(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"", "\\": quoted += "\\\(scalar)"
        case _ where scalar.value < 32 || scalar.value == 127:
            let code = String(scalar.value, radix: 16)
            quoted += "\\u" + String(repeating: "0", count: 4 - code.count) + code
        default: quoted.unicodeScalars.append(scalar)
        }
    }
    return quoted + "\""
}

extension ValueFormat where Value == Bool {
    package static let boolean = ValueFormat(
        allowed: "true or false",
        read: { literal in
            switch literal {
            case .boolean(let value): .success(value)
            case .unquoted("true"): .success(true)
            case .unquoted("false"): .success(false)
            default: .failure(MismatchError(found: literal))
            }
        },
        written: { "\($0)" }
    )
}

extension ValueFormat where Value == Int {
    /// A whole number, and a multiple of `step`.
    package static func integer(_ range: ClosedRange<Int>, step: Int = 1, unit: String = "") -> Self
    {
        let multiple = step == 1 ? "" : ", a multiple of \(step)"
        let allowed = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        return ValueFormat(
            allowed: allowed + (unit.isEmpty ? "" : " \(unit)") + multiple,
            read: { literal in
                let number: Int? =
                    switch literal {
                    case .integer(let number): Int(clamping: number)
                    case .unquoted(let text): Int(text)
                    default: nil
                    }
                guard let value = number else { return .failure(MismatchError(found: literal)) }
                guard range.contains(value) else { return .mismatch("\(value) is out of range") }
                guard value % step == 0 else {
                    return .mismatch("\(value) is not a multiple of \(step)")
                }
                return .success(value)
            },
            written: { "\($0)" }
        )
    }
}

extension ValueFormat where Value == Double {
    /// A number with or without decimals; `above` excludes the lower bound.
    package static func number(_ range: ClosedRange<Double>, above: Bool = false, unit: String = "")
        -> Self
    {
        let lower = above ? "above \(short(range.lowerBound))" : "from \(short(range.lowerBound))"
        let allowed = "a number \(lower) to \(short(range.upperBound))"
        return ValueFormat(
            allowed: allowed + (unit.isEmpty ? "" : " \(unit)"),
            read: { literal in
                let number: Double? =
                    switch literal {
                    case .integer(let number): Double(number)
                    case .number(let number): number
                    case .unquoted(let text): Double(text)
                    default: nil
                    }
                guard let value = number else { return .failure(MismatchError(found: literal)) }
                guard range.contains(value), !above || value > range.lowerBound else {
                    return .mismatch("\(short(value)) is out of range")
                }
                return .success(value)
            },
            written: { "\($0)" }
        )
    }
}

/// Formats a number without the `.0` of a whole one.
private func short(_ value: Double) -> String {
    let text = "\(value)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
}

extension ValueFormat {
    /// One of a list of words.
    package static func choice(_ words: [(String, Value)]) -> Self where Value: Equatable {
        let names = words.map { "\"\($0.0)\"" }
        return ValueFormat(
            allowed: names.joined(separator: ", "),
            read: { literal in
                guard let text = literal.text else {
                    return .failure(MismatchError(found: literal))
                }
                if let word = words.first(where: { $0.0 == text }) { return .success(word.1) }
                return .mismatch("\"\(printable(text))\" is not one of them")
            },
            written: { value in
                words.first { $0.1 == value }.map { "\"\($0.0)\"" } ?? "\"\""
            }
        )
    }

    /// A text that `parse` converts.
    ///
    /// `isDiscreet`: no message quotes the value, which may be a secret put there by mistake.
    package static func text(
        _ allowed: String,
        isDiscreet: Bool = false,
        parse: @escaping @Sendable (String) -> Result<Value, MismatchError>,
        written: @escaping @Sendable (Value) -> String
    ) -> Self {
        ValueFormat(
            allowed: allowed,
            read: { literal in
                guard let text = literal.text else {
                    let found = isDiscreet ? literal.foundKind : literal.found
                    return .mismatch("found \(found)")
                }
                return parse(text)
            },
            written: { tomlString(written($0)) }
        )
    }

    /// A text that `parse` converts; if it returns nil, the text is "not a valid `what`".
    package static func text(
        _ allowed: String,
        no what: String,
        parse: @escaping @Sendable (String) -> Value?,
        written: @escaping @Sendable (Value) -> String
    ) -> Self {
        .text(
            allowed,
            parse: { text in
                parse(text).map { .success($0) }
                    ?? .mismatch("\"\(printable(text))\" is not a valid \(what)")
            },
            written: written
        )
    }
}

extension ValueFormat where Value == String {
    /// A text for which `problem` returns nil, and not why it is refused.
    package static func text(
        _ allowed: String,
        isDiscreet: Bool = false,
        problem: @escaping @Sendable (String) -> String?
    ) -> Self {
        text(
            allowed,
            isDiscreet: isDiscreet,
            parse: { text in problem(text).map { .mismatch($0) } ?? .success(text) },
            written: { $0 }
        )
    }

    /// A text for which `isValid` returns true; any other is "not a valid `what`".
    package static func text(
        _ allowed: String,
        no what: String,
        isValid: @escaping @Sendable (String) -> Bool
    ) -> Self {
        text(allowed, no: what, parse: { isValid($0) ? $0 : nil }, written: { $0 })
    }
}

extension ValueFormat
where Value: RawRepresentable & CaseIterable & Equatable, Value.RawValue == String {
    /// One of an enumeration's raw values.
    package static func choice() -> Self {
        choice(Value.allCases.map { ($0.rawValue, $0) })
    }
}

extension ValueFormat where Value == [String] {
    /// A list of texts: an array in the file; in the environment also plain text split at commas.
    package static func list(_ allowed: String, problem: @escaping @Sendable (String) -> String?)
        -> Self
    {
        ValueFormat(
            allowed: allowed,
            read: { literal in
                let texts: [String]
                switch literal {
                case .strings(let strings): texts = strings
                case .unquoted(let text):
                    guard let list = arrayOfTexts(text) else {
                        return .mismatch("\"\(printable(text))\" is not an array of texts")
                    }
                    texts = list
                default: return .failure(MismatchError(found: literal))
                }
                if let message = texts.firstResult(problem) { return .mismatch(message) }
                return .success(texts)
            },
            written: { "[" + $0.map(tomlString).joined(separator: ", ") + "]" }
        )
    }
}

/// Parses a TOML array of texts, nil if it is not one; without brackets, splits at commas.
private func arrayOfTexts(_ text: String) -> [String]? {
    guard trimmed(text).hasPrefix("[") else { return splitAtCommas(text) }
    let entries = try? TOMLDocument(Array("list = \(text)\n".utf8)).entries()
    guard let entries, entries.count == 1, case .strings(let texts) = entries[0].value else {
        return nil
    }
    return texts
}

/// Splits at commas and trims white space.
package func splitAtCommas(_ text: String) -> [String] {
    text.split(separator: ",", omittingEmptySubsequences: false).map { trimmed($0) }
}
