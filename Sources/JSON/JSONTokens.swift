// JSON tokens (RFC 8259): strings and numbers, which may arrive in pieces. All readers use these.
internal import Host

/// A string after its opening quote: checks its escapes and its UTF-8, and resolves the escapes.
package struct JSONStringToken {
    package enum Step {
        /// The bytes end before the string.
        case more
        /// The closing quote was passed.
        case end
        /// The string is malformed; see `problem`.
        case broken
    }

    private enum State {
        /// Between two characters.
        case between
        /// Inside a character of several bytes.
        case tail
        /// After a backslash.
        case escape
        /// Inside `\u`.
        case digits
        /// After the first half of a surrogate pair, and after the backslash of the second.
        case half, halfEscape
        case control, noEscape
    }

    private enum Effect {
        /// The byte stands for itself.
        case byte
        case scalar(Unicode.Scalar)
        /// Part of an escape.
        case part
        case end, broken
    }

    private var state = State.between
    /// The bytes or digits that the current character still needs, and the range of its next byte.
    private var left = 0
    private var range: ClosedRange<UInt8> = 0x80...0xBF
    /// The code unit read so far from the digits of `\u`.
    private var unit: UInt32 = 0
    /// The first half of a surrogate pair; 0 outside of one.
    private var high: UInt32 = 0
    /// Where the current character begins.
    package private(set) var start = 0

    package init() {}

    /// Describes the error at `start`: after `broken`, or if no byte follows.
    package var problem: String {
        switch state {
        case .between: "the text ends before its closing quote"
        case .tail: "bytes that are not UTF-8"
        case .control: "a control character in a text; write it as an escape"
        case .noEscape: "no such escape"
        case .escape: "the text ends before the object does"
        case .digits where high == 0: "\\u wants four hexadecimal digits"
        case .digits, .half, .halfEscape: "unpaired surrogate"
        }
    }

    /// Passes the bytes from `at` to the closing quote or to `stop`.
    ///
    /// `content` gets the string piece by piece in UTF-8, with its escapes resolved.
    package mutating func pass(
        _ bytes: UnsafeRawBufferPointer,
        _ at: inout Int,
        to stop: Int,
        _ content: (UnsafeRawBufferPointer) throws -> Void
    ) rethrows -> Step {
        bytes.check(at, stop)
        // The first byte that was not passed on yet.
        var run = at
        while true {
            if state == .between {
                at = bytes.endOfPlainText(from: at, to: stop)
                start = at
            }
            let effect = at < stop ? consume(bytes[at]) : .part
            if case .byte = effect {
                at += 1
                continue
            }
            if case .broken = effect { return .broken }
            if run < at { try content(UnsafeRawBufferPointer(rebasing: bytes[run..<at])) }
            guard at < stop else { return .more }
            at += 1
            run = at
            if case .end = effect { return .end }
            guard case .scalar(let scalar) = effect else { continue }
            for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter {
                try withUnsafeBytes(of: byte, content)
            }
        }
    }

    private mutating func consume(_ byte: UInt8) -> Effect {
        switch state {
        case .between: return begin(byte)
        case .tail: return tail(byte)
        case .escape: return escaped(byte)
        case .digits: return digit(byte)
        case .half where byte == UInt8(ascii: "\\"): state = .halfEscape
        case .halfEscape where byte == UInt8(ascii: "u"): (state, left, unit) = (.digits, 4, 0)
        case .half, .halfEscape, .control, .noEscape: return .broken
        }
        return .part
    }

    private mutating func begin(_ byte: UInt8) -> Effect {
        switch byte {
        case UInt8(ascii: "\""): return .end
        case UInt8(ascii: "\\"):
            (state, high) = (.escape, 0)
            return .part
        case 0..<0x20:
            state = .control
            return .broken
        case 0x20..<0x80: return .byte
        default:
            state = .tail
            return beginTail(byte)
        }
    }

    /// Takes the first byte of a character beyond ASCII (RFC 3629, section 4).
    private mutating func beginTail(_ byte: UInt8) -> Effect {
        range = 0x80...0xBF
        switch byte {
        case 0xC2...0xDF: left = 1
        case 0xE0: (left, range) = (2, 0xA0...0xBF)
        case 0xED: (left, range) = (2, 0x80...0x9F)
        case 0xE1...0xEF: left = 2
        case 0xF0: (left, range) = (3, 0x90...0xBF)
        case 0xF1...0xF3: left = 3
        case 0xF4: (left, range) = (3, 0x80...0x8F)
        default: return .broken
        }
        return .byte
    }

    private mutating func tail(_ byte: UInt8) -> Effect {
        guard range.contains(byte) else { return .broken }
        (left, range) = (left - 1, 0x80...0xBF)
        if left == 0 { state = .between }
        return .byte
    }

    private mutating func escaped(_ letter: UInt8) -> Effect {
        state = .between
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return .byte
        case UInt8(ascii: "b"): return .scalar("\u{8}")
        case UInt8(ascii: "f"): return .scalar("\u{C}")
        case UInt8(ascii: "n"): return .scalar("\n")
        case UInt8(ascii: "r"): return .scalar("\r")
        case UInt8(ascii: "t"): return .scalar("\t")
        case UInt8(ascii: "u"):
            (state, left, unit) = (.digits, 4, 0)
            return .part
        default:
            state = .noEscape
            return .broken
        }
    }

    private mutating func digit(_ byte: UInt8) -> Effect {
        let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20)
        guard isLetter || byte.isDigit else { return .broken }
        unit = unit << 4 | UInt32(isLetter ? (byte | 0x20) - 87 : byte - 48)
        left -= 1
        return left > 0 ? .part : unitEnded()
    }

    /// Takes the four digits of `\u`; a code unit from 0xD800 on may be half of a surrogate pair.
    private mutating func unitEnded() -> Effect {
        state = .between
        if high != 0, (0xDC00...0xDFFF).contains(unit) {
            unit = 0x10000 + (high & 0x3FF) << 10 + (unit & 0x3FF)
            high = 0
        }
        if high == 0, let scalar = Unicode.Scalar(unit) { return .scalar(scalar) }
        // Not a character: the first half of a pair, or a half without the other.
        state = .half
        guard high == 0, unit < 0xDC00 else { return .broken }
        high = unit
        return .part
    }
}

extension UInt8 {
    /// White space between tokens.
    package var isJSONBlank: Bool { self == 32 || self == 10 || self == 13 || self == 9 }
}

extension UnsafeRawBufferPointer {
    /// A buffer checks its bounds only in debug builds, and these bytes come from anybody.
    fileprivate func check(_ start: Int, _ end: Int) {
        precondition(start >= 0 && start <= end && end <= count, "outside of the text")
    }

    /// Returns the offset of the first special byte of a JSON string in `start..<end`, or `end`.
    ///
    /// Special are quotes, backslashes, control characters and, unless `isUTF8` says that they are
    /// checked, parts of multi-byte characters.
    func endOfPlainText(from start: Int, to end: Int, isUTF8: Bool = false) -> Int {
        var at = start
        while at + 8 <= end, !hasSpecial(at, isUTF8) { at += 8 }
        // The last eight bytes, some of them checked twice.
        if at > end - 8, end - 8 >= start, !hasSpecial(end - 8, isUTF8) { return end }
        while at < end, !Self.isSpecial(self[at], isUTF8) { at += 1 }
        return at
    }

    private static func isSpecial(_ byte: UInt8, _ isUTF8: Bool) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
            || byte >= 0x80 && !isUTF8
    }

    /// Checks eight bytes at once: one below 0x20, or one that XOR made zero, borrows from its
    /// highest bit.
    private func hasSpecial(_ at: Int, _ isUTF8: Bool) -> Bool {
        let word = loadUnaligned(fromByteOffset: at, as: UInt64.self)
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quote = word ^ ones &* UInt64(UInt8(ascii: "\""))
        let backslash = word ^ ones &* UInt64(UInt8(ascii: "\\"))
        let below = (word &- ones &* 0x20) & ~word
        let equal = (quote &- ones) & ~quote | (backslash &- ones) & ~backslash
        return (below | equal | (isUTF8 ? 0 : word)) & (ones &* 0x80) != 0
    }
}

/// A number: checks its digits.
package struct JSONNumberToken {
    private enum Part {
        case start, minus, zero, whole, point, fraction, exponent, sign, power
    }

    private var part = Part.start

    package init() {}

    /// The number may end here.
    package var isWhole: Bool {
        switch part {
        case .zero, .whole, .fraction, .power: true
        case .start, .minus, .point, .exponent, .sign: false
        }
    }

    /// Passes the bytes from `at` that belong to the number, at most to `stop`.
    package mutating func pass(_ bytes: UnsafeRawBufferPointer, _ at: inout Int, to stop: Int) {
        bytes.check(at, stop)
        while at < stop, let next = next(bytes[at]) { (part, at) = (next, at + 1) }
    }

    private func next(_ byte: UInt8) -> Part? {
        switch (part, byte) {
        case (.start, UInt8(ascii: "-")): .minus
        case (.start, UInt8(ascii: "0")), (.minus, UInt8(ascii: "0")): .zero
        case (.start, 49...57), (.minus, 49...57), (.whole, 48...57): .whole
        case (.point, 48...57), (.fraction, 48...57): .fraction
        case (.exponent, 48...57), (.sign, 48...57), (.power, 48...57): .power
        case (.zero, UInt8(ascii: ".")), (.whole, UInt8(ascii: ".")): .point
        case (.exponent, UInt8(ascii: "+")), (.exponent, UInt8(ascii: "-")): .sign
        case (.zero, _), (.whole, _), (.fraction, _):
            byte | 0x20 == UInt8(ascii: "e") ? .exponent : nil
        default: nil
        }
    }
}
