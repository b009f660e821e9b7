// A streaming JSON validator: accepts bytes in pieces, in constant memory.

/// The kind of a value; `yes` is true, `no` is false.
package enum JSONKind {
    case object, array, number, text, yes, no, null
}

/// Receives the parts of the JSON text; `depth` counts the containers around them.
package protocol JSONListener {
    /// A value begins; in an object, its name is complete.
    mutating func began(_ kind: JSONKind, depth: Int)
    /// The value inside `depth` containers has ended.
    mutating func ended(depth: Int)
    /// A piece of a member's name, escapes resolved.
    mutating func name(_ piece: UnsafeRawBufferPointer, depth: Int)
    /// A piece of the current text, or a digit of the current number.
    mutating func content(_ piece: UnsafeRawBufferPointer, depth: Int)
}

/// The grammar of RFC 8259 with JSONDecoder's tolerances.
///
/// It accepts a comma before a closing bracket, skips a byte order mark at the start, and allows
/// 512 levels.
package struct JSONGrammar<Listener: JSONListener> {
    private static var deepest: Int { 512 }

    private enum State {
        /// Between tokens; the case names what must come next.
        case start, value, valueOrEnd, nameOrEnd, colon, commaOrEnd, over
        case string(JSONStringToken, isName: Bool)
        case number(JSONNumberToken)
        /// The rest of `true`, `false`, `null` or a byte order mark.
        case word(ArraySlice<UInt8>, isMark: Bool)
        case broken
    }

    package var listener: Listener
    private var state = State.start
    /// The closing brackets of the open containers.
    private var open: [UInt8] = []
    /// Only white space has come.
    package private(set) var isBlank = true

    package init(_ listener: Listener) {
        self.listener = listener
    }

    /// The input is not JSON, whatever follows.
    package var isBroken: Bool { if case .broken = state { true } else { false } }

    /// The input so far is a complete JSON text.
    package var isWhole: Bool {
        switch state {
        case .over: true
        case .number(let token): open.isEmpty && token.isWhole
        default: false
        }
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        var at = 0
        while at < bytes.count {
            switch state {
            case .start where bytes[at] == 0xEF:
                (state, isBlank) = (.word([0xBB, 0xBF], isMark: true), false)
                at += 1
            case .start: state = .value
            case .string(let token, let isName): passString(bytes, &at, token, isName)
            case .number(let token): passNumber(bytes, &at, token)
            case .word(let rest, let isMark): passWord(bytes, &at, rest, isMark)
            case .broken: return
            default: passBetween(bytes, &at)
            }
        }
    }

    /// Passes white space and the byte after it, except the first of a number.
    private mutating func passBetween(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) {
        while at < bytes.count, bytes[at].isJSONBlank { at += 1 }
        guard at < bytes.count else { return }
        isBlank = false
        at += 1
        let byte = bytes[at - 1]
        switch state {
        case .valueOrEnd where byte == open.last, .nameOrEnd where byte == open.last,
            .commaOrEnd where byte == open.last:
            open.removeLast()
            endValue()
        case .value, .valueOrEnd:
            if !begin(byte) { at -= 1 }
        case .nameOrEnd where byte == UInt8(ascii: "\""):
            state = .string(JSONStringToken(), isName: true)
        case .colon where byte == UInt8(ascii: ":"): state = .value
        case .commaOrEnd where byte == UInt8(ascii: ","):
            state = open.last == UInt8(ascii: "}") ? .nameOrEnd : .valueOrEnd
        default: state = .broken
        }
    }

    /// Begins a value; returns false for a number, whose first byte is not passed yet.
    private mutating func begin(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "{"): enter(.object, .nameOrEnd, until: UInt8(ascii: "}"))
        case UInt8(ascii: "["): enter(.array, .valueOrEnd, until: UInt8(ascii: "]"))
        case UInt8(ascii: "\""): begin(.text, .string(JSONStringToken(), isName: false))
        case UInt8(ascii: "t"): begin(.yes, .word(Array("rue".utf8)[...], isMark: false))
        case UInt8(ascii: "f"): begin(.no, .word(Array("alse".utf8)[...], isMark: false))
        case UInt8(ascii: "n"): begin(.null, .word(Array("ull".utf8)[...], isMark: false))
        default:
            begin(.number, .number(JSONNumberToken()))
            return false
        }
        return true
    }

    private mutating func begin(_ kind: JSONKind, _ next: State) {
        listener.began(kind, depth: open.count)
        state = next
    }

    private mutating func enter(_ kind: JSONKind, _ next: State, until closing: UInt8) {
        guard open.count < Self.deepest else { return state = .broken }
        begin(kind, next)
        open.append(closing)
    }

    private mutating func endValue() {
        listener.ended(depth: open.count)
        state = open.isEmpty ? .over : .commaOrEnd
    }

    // MARK: Tokens

    private mutating func passString(
        _ bytes: UnsafeRawBufferPointer,
        _ at: inout Int,
        _ token: JSONStringToken,
        _ isName: Bool
    ) {
        var token = token
        let depth = open.count
        let step = token.pass(bytes, &at, to: bytes.count) {
            if isName {
                listener.name($0, depth: depth)
            } else {
                listener.content($0, depth: depth)
            }
        }
        switch step {
        case .more: state = .string(token, isName: isName)
        case .end where isName: state = .colon
        case .end: endValue()
        case .broken: state = .broken
        }
    }

    private mutating func passNumber(
        _ bytes: UnsafeRawBufferPointer,
        _ at: inout Int,
        _ token: JSONNumberToken
    ) {
        var token = token
        let start = at
        token.pass(bytes, &at, to: bytes.count)
        listener.content(UnsafeRawBufferPointer(rebasing: bytes[start..<at]), depth: open.count)
        if at == bytes.count {
            state = .number(token)
        } else if token.isWhole {
            endValue()
        } else {
            state = .broken
        }
    }

    private mutating func passWord(
        _ bytes: UnsafeRawBufferPointer,
        _ at: inout Int,
        _ rest: ArraySlice<UInt8>,
        _ isMark: Bool
    ) {
        guard rest.first == bytes[at] else { return state = .broken }
        at += 1
        if rest.count > 1 {
            state = .word(rest.dropFirst(), isMark: isMark)
        } else if isMark {
            state = .value
        } else {
            endValue()
        }
    }
}
