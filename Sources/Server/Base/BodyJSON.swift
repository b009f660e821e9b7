// Walks over JSON (RFC 8259) in place, without building values.
import JSON

/// The place where bytes are not valid JSON.
package struct BodyError: Error {
    /// The offset of the byte, from 0.
    package var place: Int
}

/// A position in a JSON text; every step checks what it passes.
///
/// Time is linear in the bytes, and memory is constant: nesting has a limit, and the pages of a
/// mapped body are released once passed.
package struct BodyJSON {
    package let bytes: ByteView
    package private(set) var position: Int
    /// Bytes before this offset are released from memory.
    private var released: Int

    /// The open objects and arrays around the position; inside a record, counted from the record.
    private var depth = 0
    /// True if a record is being checked: its member names are unique and its depth is limited.
    private var isRecord = false
    private var names = MemberNames()
    private let limit: WorkLimit?
    private var steps = 0

    private static let depthLimit = 512
    /// The maximum depth in a record, including the record itself.
    static let recordDepth = 16
    private static let stride = 1 << 20

    /// `limit`: the processor time that the walk may use.
    package init(_ bytes: ByteView, at position: Int = 0, limit: WorkLimit? = nil) {
        self.bytes = bytes
        self.position = position
        self.limit = limit
        released = position
    }

    private var fault: BodyError { BodyError(place: position) }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    // MARK: Parts

    /// Walks over an object; `member` gets the raw name and has to pass the value.
    package mutating func object(_ member: (inout BodyJSON, Range<Int>) throws -> Void) throws {
        try expect("{")
        try beginLevel(depth + 1)
        depth += 1
        defer { depth -= 1 }
        guard !consume("}") else { return }
        repeat {
            let name = try name(inside: 0)
            try member(&self, name)
        } while consume(",")
        try expect("}")
    }

    /// Walks over an array; `element` has to pass each element.
    package mutating func array(_ element: (inout BodyJSON) throws -> Void) throws {
        try expect("[")
        try beginLevel(depth + 1)
        depth += 1
        defer { depth -= 1 }
        guard !consume("]") else { return }
        repeat { try element(&self) } while consume(",")
        try expect("]")
    }

    /// Passes a value of any kind and returns its range.
    @discardableResult
    package mutating func value() throws -> Range<Int> {
        skipBlanks()
        let start = position
        // The closing brackets of the open objects and arrays.
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

    /// Walks over a record with its limits; throws `RecordError` if it breaks them.
    package mutating func record<Value>(_ walk: (inout BodyJSON) throws -> Value) throws -> Value {
        let outer = depth
        (depth, isRecord) = (0, true)
        defer { (depth, isRecord) = (outer, false) }
        return try walk(&self)
    }

    /// Returns to a place that was passed.
    package mutating func goBack(to place: Int) { position = place }

    /// Throws if anything but blanks is left.
    package mutating func end() throws {
        skipBlanks()
        guard peek == nil else { throw fault }
    }

    /// Returns the next value's first byte, which shows its kind.
    package mutating func next() -> UInt8? {
        skipBlanks()
        return peek
    }

    // MARK: Values

    /// Passes a value, or enters a non-empty object or array and returns its closing bracket.
    ///
    /// `count`: the open objects and arrays in this value.
    private mutating func enter(inside count: Int) throws -> UInt8? {
        try step()
        switch peek {
        case UInt8(ascii: "{"):
            position += 1
            try beginLevel(depth + count + 1)
            return consume("}") ? nil : UInt8(ascii: "}")
        case UInt8(ascii: "["):
            position += 1
            try beginLevel(depth + count + 1)
            return consume("]") ? nil : UInt8(ascii: "]")
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "t"): try word("true")
        case UInt8(ascii: "f"): try word("false")
        case UInt8(ascii: "n"): try word("null")
        default: try number()
        }
        return nil
    }

    /// After a value: moves to the next one on its level, or out of everything that ends here.
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

    /// Passes a member's name and the colon; returns the range of the name with its quotes.
    private mutating func name(inside count: Int) throws -> Range<Int> {
        skipBlanks()
        let start = position
        try string()
        let name = start..<position
        if isRecord { try names.add(name, of: bytes, at: depth + count) }
        try expect(":")
        return name
    }

    /// Checks the depth of an object or array that begins.
    private mutating func beginLevel(_ level: Int) throws {
        guard isRecord else {
            guard level <= Self.depthLimit else { throw fault }
            return
        }
        guard level <= Self.recordDepth else {
            let reason = "something lies deeper than \(Self.recordDepth) levels"
            throw RecordError(reason: reason)
        }
        names.open(at: level)
    }

    /// Checks the processor time now and then.
    private mutating func step() throws {
        steps += 1
        if steps & 0xFFFF == 0 { try limit?.check() }
    }

    private mutating func string() throws {
        guard peek == UInt8(ascii: "\"") else { throw fault }
        position += 1
        var token = JSONStringToken()
        while true {
            let stop = min(bytes.count, position + Self.stride)
            let step = token.pass(bytes.all, &position, to: stop) { _ in }
            if position == stop { try limit?.check() }
            release()
            if case .end = step { return }
            guard case .more = step, stop < bytes.count else {
                throw BodyError(place: token.start)
            }
        }
    }

    private mutating func number() throws {
        var token = JSONNumberToken()
        token.pass(bytes.all, &position, to: bytes.count)
        guard token.isWhole else { throw fault }
    }

    private mutating func word(_ word: StaticString) throws {
        for index in 0..<word.utf8CodeUnitCount {
            guard peek == word.utf8Start[index] else { throw fault }
            position += 1
        }
    }

    // MARK: Bytes

    private mutating func skipBlanks() {
        while peek?.isJSONBlank == true { position += 1 }
        release()
    }

    private mutating func consume(_ character: Unicode.Scalar) -> Bool {
        skipBlanks()
        guard peek == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func expect(_ character: Unicode.Scalar) throws {
        guard consume(character) else { throw fault }
    }

    private mutating func release() {
        guard position - released > Self.stride else { return }
        bytes.release(released..<position)
        released = position
    }
}
