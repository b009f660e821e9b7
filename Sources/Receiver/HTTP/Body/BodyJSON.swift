// Walks over JSON (RFC 8259) where it lies, and builds nothing.

/// Why bytes are no JSON.
struct BodyFault: Error {
    /// The byte it is about; the first is 0.
    var place: Int
}

/// A place in a JSON text; every step checks what it passes.
///
/// Time grows with the bytes alone, and memory does not: nesting has a limit, and a mapped body is let go behind it.
struct BodyJSON {
    let bytes: ByteView
    private(set) var position: Int
    /// What lies before is not needed in memory any more.
    private var released: Int

    /// Objects and arrays that the walk is inside of; those of a record count from the record on.
    private var depth = 0
    /// Inside of a record that is checked: an object has each member once, and little lies deep.
    private var isRecord = false
    private var names = MemberNames()
    private let limit: WorkLimit?
    private var steps = 0

    private static let depthLimit = 512
    /// In a record, with the record itself.
    static let recordDepth = 16
    private static let stride = 1 << 20

    /// `limit`: what the walk may cost.
    init(_ bytes: ByteView, at position: Int = 0, limit: WorkLimit? = nil) {
        self.bytes = bytes
        self.position = position
        self.limit = limit
        released = position
    }

    private var fault: BodyFault { BodyFault(place: position) }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    // MARK: Parts

    /// Goes through an object; `member` gets its name as it is written, and has to pass the value.
    mutating func object(_ member: (inout BodyJSON, Range<Int>) throws -> Void) throws {
        try expect("{")
        try beginLevel(depth + 1)
        depth += 1
        defer { depth -= 1 }
        guard !take("}") else { return }
        repeat {
            let name = try name(inside: 0)
            try member(&self, name)
        } while take(",")
        try expect("}")
    }

    /// Goes through an array; `element` has to pass each.
    mutating func array(_ element: (inout BodyJSON) throws -> Void) throws {
        try expect("[")
        try beginLevel(depth + 1)
        depth += 1
        defer { depth -= 1 }
        guard !take("]") else { return }
        repeat { try element(&self) } while take(",")
        try expect("]")
    }

    /// Passes a value of any kind; where it stands.
    @discardableResult
    mutating func value() throws -> Range<Int> {
        skipBlanks()
        let start = position
        // The closing brackets of what is open.
        var open: [UInt8] = []
        repeat {
            skipBlanks()
            if let closing = try enter(inside: open.count) {
                open.append(closing)
                if closing == UInt8(ascii: "}") { _ = try name(inside: open.count) }
                continue
            }
            try leave(&open)
        } while !open.isEmpty
        return start..<position
    }

    /// Walks over a record, which has to be fit to be stored; throws `IncomingRecord.Fault` where it is not.
    mutating func record<Value>(_ walk: (inout BodyJSON) throws -> Value) throws -> Value {
        let outer = depth
        (depth, isRecord) = (0, true)
        defer { (depth, isRecord) = (outer, false) }
        return try walk(&self)
    }

    /// To a place that was passed.
    mutating func goBack(to place: Int) { position = place }

    /// Nothing but blanks is left.
    mutating func end() throws {
        skipBlanks()
        guard peek == nil else { throw fault }
    }

    /// The kind of value that comes next, by its first byte.
    mutating func next() -> UInt8? {
        skipBlanks()
        return peek
    }

    // MARK: Values

    /// Passes a value, or goes into an object or array that is not empty: the bracket that closes it.
    ///
    /// `count`: objects and arrays that are open in this value.
    private mutating func enter(inside count: Int) throws -> UInt8? {
        try step()
        switch peek {
        case UInt8(ascii: "{"):
            position += 1
            try beginLevel(depth + count + 1)
            return take("}") ? nil : UInt8(ascii: "}")
        case UInt8(ascii: "["):
            position += 1
            try beginLevel(depth + count + 1)
            return take("]") ? nil : UInt8(ascii: "]")
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "t"): try word("true")
        case UInt8(ascii: "f"): try word("false")
        case UInt8(ascii: "n"): try word("null")
        default: try number()
        }
        return nil
    }

    /// Behind a value: on to the next one beside it, or out of all that ends here.
    private mutating func leave(_ open: inout [UInt8]) throws {
        while let closing = open.last {
            skipBlanks()
            if peek == UInt8(ascii: ",") {
                position += 1
                if closing == UInt8(ascii: "}") { _ = try name(inside: open.count) }
                return
            }
            guard peek == closing else { throw fault }
            position += 1
            open.removeLast()
        }
    }

    /// A member's name with its quotes, up to its value.
    private mutating func name(inside count: Int) throws -> Range<Int> {
        skipBlanks()
        let start = position
        try string()
        let name = start..<position
        if isRecord { try names.add(name, of: bytes, at: depth + count) }
        try expect(":")
        return name
    }

    /// An object or array begins, so deep.
    private mutating func beginLevel(_ level: Int) throws {
        guard isRecord else {
            guard level <= Self.depthLimit else { throw fault }
            return
        }
        guard level <= Self.recordDepth else {
            let reason = "something lies deeper than \(Self.recordDepth) levels"
            throw IncomingRecord.Fault(reason: reason)
        }
        names.open(at: level)
    }

    /// Looks at the clock now and then.
    private mutating func step() throws {
        steps += 1
        if steps & 0xFFFF == 0 { try limit?.check() }
    }

    private mutating func string() throws {
        guard peek == UInt8(ascii: "\"") else { throw fault }
        position += 1
        while true {
            let stop = min(bytes.count, position + Self.stride)
            position = bytes.endOfPlainText(from: position, to: stop)
            if position == stop { try limit?.check() }
            release()
            guard let byte = peek else { throw fault }
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return
            case UInt8(ascii: "\\"): position = try JSONString.escapeEnd(bytes, at: position)
            case 0x80...: position = try JSONString.scalarEnd(bytes, at: position)
            case ..<0x20: throw fault
            default: continue
            }
        }
    }

    private mutating func number() throws {
        if peek == UInt8(ascii: "-") { position += 1 }
        if peek == UInt8(ascii: "0") { position += 1 } else { try digits() }
        if peek == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        guard let byte = peek, byte | 0x20 == UInt8(ascii: "e") else { return }
        position += 1
        if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { position += 1 }
        try digits()
    }

    private mutating func digits() throws {
        let start = position
        while let byte = peek, (0x30...0x39).contains(byte) { position += 1 }
        guard position > start else { throw fault }
    }

    private mutating func word(_ word: StaticString) throws {
        for index in 0..<word.utf8CodeUnitCount {
            guard peek == word.utf8Start[index] else { throw fault }
            position += 1
        }
    }

    // MARK: Bytes

    private mutating func skipBlanks() {
        while let byte = peek, byte == 32 || byte == 10 || byte == 13 || byte == 9 { position += 1 }
        release()
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        skipBlanks()
        guard peek == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func expect(_ character: Unicode.Scalar) throws {
        guard take(character) else { throw fault }
    }

    private mutating func release() {
        guard position - released > Self.stride else { return }
        bytes.release(released..<position)
        released = position
    }
}
