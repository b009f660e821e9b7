// A streaming JSON validator: accepts bytes in pieces, in constant memory.

/// The kind of a value; `yes` is true, `no` is false.
package enum JSONKind {
    case object, array, number, text, yes, no, null
}

/// Receives the parts of the JSON text; `depth` counts the containers around them.
package protocol JSONListener {
    mutating func began(_ kind: JSONKind, depth: Int)
    /// The value inside `depth` containers has ended.
    mutating func ended(depth: Int)
    /// One byte of a member's name, escapes resolved; 0xFF for anything but a plain ASCII
    /// character.
    mutating func name(_ byte: UInt8, depth: Int)
    mutating func nameEnded(depth: Int)
    mutating func number(_ byte: UInt8, depth: Int)
    /// The current string is not empty.
    mutating func filled(depth: Int)
    /// Returns true if the listener wants the member names at this depth.
    func wantsNames(depth: Int) -> Bool
}

/// The grammar of RFC 8259 with JSONDecoder's tolerances.
///
/// It accepts a comma before a closing bracket, skips a byte order mark at the start, and allows
/// 512 levels.
package struct JSONGrammar<Listener: JSONListener> {
    private static var deepest: Int { 512 }

    private enum State {
        /// Between tokens; the case names what must come next.
        case value, valueOrEnd, nameOrEnd, colon, commaOrEnd, over
        case name(JSONStringToken)
        case text(JSONStringToken)
        case number(JSONNumberToken)
        /// The rest of `true`, `false` or `null`.
        case word(ArraySlice<UInt8>)
        case broken
    }

    package var listener: Listener
    private var state = State.value
    private var depth = 0
    /// One bit per open container: 1 for an object.
    private var objects = [UInt64](repeating: 0, count: 8)
    /// Bytes of a byte order mark seen so far; nil once anything else has come.
    private var mark: Int? = 0
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
        case .number(let token): depth == 0 && token.isWhole
        default: false
        }
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        var at = 0
        while at < bytes.count {
            if mark == nil { at = passed(bytes, from: at) }
            guard at < bytes.count, !isBroken else { return }
            if !isOfMark(bytes[at]) { take(bytes[at]) }
            at += 1
        }
    }

    /// Skips bytes that change no state: most of a long answer is string content or white space.
    private func passed(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var at = start
        switch state {
        case .text(let token), .name(let token):
            if case .name = state, listener.wantsNames(depth: depth) { return start }
            guard token.isPlain, !token.isEmpty else { return start }
            while at < bytes.count, Self.isPlain(bytes[at]) { at += 1 }
        default:
            guard isBetween else { return start }
            while at < bytes.count, Self.isBlank(bytes[at]) { at += 1 }
        }
        return at
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte < 0x80 && byte != 0x22 && byte != 0x5C
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 32 || byte == 10 || byte == 13 || byte == 9
    }

    private mutating func take(_ byte: UInt8) {
        guard !Self.isBlank(byte) || !isBetween else { return }
        isBlank = false
        switch state {
        case .name(let token): takeName(byte, token)
        case .text(let token): takeText(byte, token)
        case .number(let token): takeNumber(byte, token)
        case .word(let rest): takeWord(byte, rest)
        case .value, .valueOrEnd, .nameOrEnd, .colon, .commaOrEnd, .over: takeBetween(byte)
        case .broken: break
        }
    }

    /// Consumes a byte order mark at the start; an incomplete one is an error.
    private mutating func isOfMark(_ byte: UInt8) -> Bool {
        guard let place = mark else { return false }
        let bytes: [UInt8] = [0xEF, 0xBB, 0xBF]
        guard bytes[place] == byte else {
            if place > 0 { (state, isBlank) = (.broken, false) }
            mark = nil
            return false
        }
        isBlank = false
        mark = place == 2 ? nil : place + 1
        return true
    }

    private var isBetween: Bool {
        switch state {
        case .value, .valueOrEnd, .nameOrEnd, .colon, .commaOrEnd, .over: true
        case .name, .text, .number, .word, .broken: false
        }
    }

    private mutating func takeBetween(_ byte: UInt8) {
        switch (state, byte) {
        case (.value, _): begin(byte)
        case (.valueOrEnd, UInt8(ascii: "]")), (.commaOrEnd, UInt8(ascii: "]")): close(byte)
        case (.valueOrEnd, _): begin(byte)
        case (.nameOrEnd, UInt8(ascii: "}")), (.commaOrEnd, UInt8(ascii: "}")): close(byte)
        case (.nameOrEnd, UInt8(ascii: "\"")): state = .name(JSONStringToken())
        case (.colon, UInt8(ascii: ":")): state = .value
        case (.commaOrEnd, UInt8(ascii: ",")): state = isInObject ? .nameOrEnd : .valueOrEnd
        default: state = .broken
        }
    }

    private mutating func begin(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["): open(byte)
        case UInt8(ascii: "\""):
            listener.began(.text, depth: depth)
            state = .text(JSONStringToken())
        case UInt8(ascii: "t"): beginWord(.yes, "rue".utf8)
        case UInt8(ascii: "f"): beginWord(.no, "alse".utf8)
        case UInt8(ascii: "n"): beginWord(.null, "ull".utf8)
        default:
            guard let token = JSONNumberToken(byte) else { return state = .broken }
            listener.began(.number, depth: depth)
            listener.number(byte, depth: depth)
            state = .number(token)
        }
    }

    private mutating func beginWord(_ kind: JSONKind, _ rest: String.UTF8View) {
        listener.began(kind, depth: depth)
        state = .word(Array(rest)[...])
    }

    private mutating func takeName(_ byte: UInt8, _ token: JSONStringToken) {
        var token = token
        switch token.take(byte) {
        case .more(let character):
            if let character { listener.name(character, depth: depth) }
            state = .name(token)
        case .end:
            listener.nameEnded(depth: depth)
            state = .colon
        case .broken: state = .broken
        }
    }

    private mutating func takeText(_ byte: UInt8, _ token: JSONStringToken) {
        var token = token
        let isFirst = token.isEmpty
        switch token.take(byte) {
        case .more:
            if isFirst { listener.filled(depth: depth) }
            state = .text(token)
        case .end: endValue()
        case .broken: state = .broken
        }
    }

    private mutating func takeNumber(_ byte: UInt8, _ token: JSONNumberToken) {
        var token = token
        if token.take(byte) {
            listener.number(byte, depth: depth)
            state = .number(token)
        } else if token.isWhole {
            endValue()
            take(byte)
        } else {
            state = .broken
        }
    }

    private mutating func takeWord(_ byte: UInt8, _ rest: ArraySlice<UInt8>) {
        guard rest.first == byte else { return state = .broken }
        if rest.count == 1 { endValue() } else { state = .word(rest.dropFirst()) }
    }

    // MARK: Containers

    private var isInObject: Bool {
        depth > 0 && objects[(depth - 1) / 64] & 1 << UInt64((depth - 1) % 64) != 0
    }

    private mutating func open(_ byte: UInt8) {
        guard depth < Self.deepest else { return state = .broken }
        let isObject = byte == UInt8(ascii: "{")
        listener.began(isObject ? .object : .array, depth: depth)
        let bit: UInt64 = 1 << UInt64(depth % 64)
        if isObject { objects[depth / 64] |= bit } else { objects[depth / 64] &= ~bit }
        depth += 1
        state = isObject ? .nameOrEnd : .valueOrEnd
    }

    private mutating func close(_ byte: UInt8) {
        guard depth > 0, isInObject == (byte == UInt8(ascii: "}")) else { return state = .broken }
        depth -= 1
        endValue()
    }

    private mutating func endValue() {
        listener.ended(depth: depth)
        state = depth == 0 ? .over : .commaOrEnd
    }
}
