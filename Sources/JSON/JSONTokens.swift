// JSON tokens (RFC 8259), parsed byte by byte: strings and numbers.

/// A string after its opening quote: validates its escapes and its UTF-8.
package struct JSONStringToken {
    package enum Step {
        /// The string continues; carries a one-byte character with its escape resolved.
        case more(UInt8?)
        case end
        case broken
    }

    private enum Escape: Equatable {
        case none
        case begun
        /// Inside `\u`, with this many digits to come.
        case digits(Int)
    }

    private var escape = Escape.none
    /// The code unit read so far from the digits of `\u`.
    private var unit = 0
    /// The first half of a surrogate pair has come; the second must follow.
    private var isHalf = false
    private var text = UTF8Check()
    /// Nothing has come after the opening quote.
    package private(set) var isEmpty = true

    /// A plain character can be skipped without changing the state.
    package var isPlain: Bool { escape == .none && !isHalf && text.isWhole }

    package mutating func take(_ byte: UInt8) -> Step {
        isEmpty = false
        switch escape {
        case .none: return plain(byte)
        case .begun: return escaped(byte)
        case .digits(let left): return digit(byte, left: left)
        }
    }

    private mutating func plain(_ byte: UInt8) -> Step {
        guard text.take(byte), byte >= 0x20 else { return .broken }
        if byte == UInt8(ascii: "\\") {
            escape = .begun
            return .more(nil)
        }
        if isHalf { return .broken }
        if byte == UInt8(ascii: "\"") { return .end }
        return .more(byte < 0x80 ? byte : 0xFF)
    }

    private mutating func escaped(_ byte: UInt8) -> Step {
        if byte == UInt8(ascii: "u") {
            (escape, unit) = (.digits(4), 0)
            return .more(nil)
        }
        escape = .none
        // No name that we know contains `\b`, `\f` and the like: any byte serves.
        guard !isHalf, "\"\\/bfnrt".utf8.contains(byte) else { return .broken }
        return .more("\"\\/".utf8.contains(byte) ? byte : 0xFF)
    }

    private mutating func digit(_ byte: UInt8, left: Int) -> Step {
        guard let value = Character(UnicodeScalar(byte)).hexDigitValue else { return .broken }
        unit = unit << 4 | value
        escape = left > 1 ? .digits(left - 1) : .none
        guard left == 1 else { return .more(nil) }
        switch unit {
        case 0xD800...0xDBFF:
            guard !isHalf else { return .broken }
            isHalf = true
            return .more(nil)
        case 0xDC00...0xDFFF:
            guard isHalf else { return .broken }
            isHalf = false
            return .more(0xFF)
        default:
            return isHalf ? .broken : .more(unit < 0x80 ? UInt8(unit) : 0xFF)
        }
    }
}

/// Validates UTF-8 byte by byte (RFC 3629, section 4).
package struct UTF8Check {
    /// Bytes that the character still needs, and the range of the next one.
    private var left = 0
    private var next: ClosedRange<UInt8> = 0x80...0xBF

    package var isWhole: Bool { left == 0 }

    /// Consumes a byte; returns false if it is not allowed here.
    package mutating func take(_ byte: UInt8) -> Bool {
        if left > 0 {
            guard next.contains(byte) else { return false }
            (left, next) = (left - 1, 0x80...0xBF)
            return true
        }
        switch byte {
        case 0..<0x80: return true
        case 0xC2...0xDF: left = 1
        case 0xE0: (left, next) = (2, 0xA0...0xBF)
        case 0xED: (left, next) = (2, 0x80...0x9F)
        case 0xE1...0xEF: left = 2
        case 0xF0: (left, next) = (3, 0x90...0xBF)
        case 0xF1...0xF3: left = 3
        case 0xF4: (left, next) = (3, 0x80...0x8F)
        default: return false
        }
        return true
    }
}

/// A number, parsed byte by byte.
package struct JSONNumberToken {
    private enum Part {
        case minus, zero, whole, point, fraction, exponent, sign, power
    }

    private var part: Part

    /// Returns nil if a number cannot begin with this byte.
    package init?(_ first: UInt8) {
        switch first {
        case UInt8(ascii: "-"): part = .minus
        case UInt8(ascii: "0"): part = .zero
        case UInt8(ascii: "1")...UInt8(ascii: "9"): part = .whole
        default: return nil
        }
    }

    /// The number may end here.
    package var isWhole: Bool {
        switch part {
        case .zero, .whole, .fraction, .power: true
        case .minus, .point, .exponent, .sign: false
        }
    }

    /// Consumes a byte; returns false if it does not belong to the number.
    package mutating func take(_ byte: UInt8) -> Bool {
        guard let next = after(byte) else { return false }
        part = next
        return true
    }

    private func after(_ byte: UInt8) -> Part? {
        switch (part, byte) {
        case (.minus, UInt8(ascii: "0")): .zero
        case (.minus, UInt8(ascii: "1")...UInt8(ascii: "9")): .whole
        case (.whole, UInt8(ascii: "0")...UInt8(ascii: "9")): .whole
        case (.zero, UInt8(ascii: ".")), (.whole, UInt8(ascii: ".")): .point
        case (.point, UInt8(ascii: "0")...UInt8(ascii: "9")): .fraction
        case (.fraction, UInt8(ascii: "0")...UInt8(ascii: "9")): .fraction
        case (.zero, 0x45), (.zero, 0x65), (.whole, 0x45), (.whole, 0x65), (.fraction, 0x45),
            (.fraction, 0x65):
            .exponent
        case (.exponent, UInt8(ascii: "+")), (.exponent, UInt8(ascii: "-")): .sign
        case (.exponent, UInt8(ascii: "0")...UInt8(ascii: "9")): .power
        case (.sign, UInt8(ascii: "0")...UInt8(ascii: "9")): .power
        case (.power, UInt8(ascii: "0")...UInt8(ascii: "9")): .power
        default: nil
        }
    }
}
