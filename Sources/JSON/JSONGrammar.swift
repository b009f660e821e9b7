// Whether bytes that come in pieces are JSON: total, and in constant memory however long they are.

/// What kind of value begins.
package enum JSONKind {
    case object, array, number, text, yes, no, null
}

/// Hears what stands in the JSON; `depth` counts the containers around it.
package protocol JSONListener {
    mutating func began(_ kind: JSONKind, depth: Int)
    /// A value that stands in `depth` containers is over.
    mutating func ended(depth: Int)
    /// A byte of a member's name, escapes undone; 0xFF for what is no plain character.
    mutating func name(_ byte: UInt8, depth: Int)
    mutating func nameEnded(depth: Int)
    mutating func number(_ byte: UInt8, depth: Int)
    /// The text that has begun has a first character.
    mutating func filled(depth: Int)
    /// Whether the names of members in so many containers are to be told.
    func wantsNames(depth: Int) -> Bool
}

/// The grammar of RFC 8259 as JSONDecoder reads it: a comma before a closing bracket is forgiven, a mark of the
/// byte order at the start is passed over, and nothing is deeper than 512.
package struct JSONGrammar<Listener: JSONListener> {
    private static var deepest: Int { 512 }

    private enum State {
        /// Between tokens: what must come next.
        case value, valueOrEnd, nameOrEnd, colon, commaOrEnd, over
        case name(JSONStringToken)
        case text(JSONStringToken)
        case number(JSONNumberToken)
        /// What is left of `true`, `false` or `null`.
        case word(ArraySlice<UInt8>)
        case broken
    }

    package var listener: Listener
    private var state = State.value
    private var depth = 0
    /// A bit for each container that is open: 1 for an object.
    private var objects = [UInt64](repeating: 0, count: 8)
    /// How much of a byte order mark has come; nil once something else has.
    private var mark: Int? = 0
    /// Nothing but blanks came.
    package private(set) var isBlank = true

    package init(_ listener: Listener) {
        self.listener = listener
    }

    /// What has come is no JSON, whatever follows.
    package var isBroken: Bool { if case .broken = state { true } else { false } }

    /// What has come is JSON.
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

    /// Skips bytes that change no state: most of a long answer is text or blanks.
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

    /// A byte order mark before all else; one that is not whole is an error.
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
