// A cursor over JSON from outside, which copies values byte for byte as written.
internal import Host

/// An error in JSON, or valid JSON that exceeds a limit.
package struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The byte at which the error is, counted from 1.
    package var place: Int
    package var message: String
    /// The bytes are valid JSON, but more than is accepted.
    package var isRefusal = false

    package var description: String {
        "\(isRefusal ? "refused" : "not JSON") at byte \(place): \(message)"
    }
}

/// Walks over one JSON text (RFC 8259) and copies values without the white space between tokens.
///
/// Any bytes give values or a fault, in time and memory proportional to their number. Stricter than
/// the grammar where readers disagree: names in an object are unique, strings are UTF-8 without
/// unpaired surrogates, and nesting has a limit.
package struct JSONCursor: Sendable {
    /// The name of a member.
    package struct Name: Sendable {
        /// The decoded name: without quotes, escapes resolved.
        package var text: [UInt8]
        /// The name as written, with its quotes.
        package var written: ArraySlice<UInt8>
        /// Its first byte, counted from 1.
        package var place: Int
    }

    private let bytes: [UInt8]
    private let depthLimit: Int
    private let memberLimit: Int
    private let foldsCase: Bool
    private var at = 0
    /// The names seen in each open object; empty for an open array.
    private var open: [NamesSeen] = []

    /// `memberLimit` applies per object; `foldsCase` makes names that differ only by ASCII case
    /// equal.
    package init(
        _ bytes: [UInt8],
        depthLimit: Int = 32,
        memberLimit: Int = .max,
        foldsCase: Bool = false
    ) {
        self.bytes = bytes
        self.depthLimit = depthLimit
        self.memberLimit = memberLimit
        self.foldsCase = foldsCase
    }

    /// The position of the next byte, counted from 1.
    package var place: Int { at + 1 }

    // MARK: Parts

    /// Enters an object; `expected` names it in the error.
    package mutating func openObject(_ expected: String) throws(JSONError) {
        guard next() == UInt8(ascii: "{") else { throw unexpected(expected) }
        try enter()
    }

    /// Reads the next member's name and colon; at the end of the object, leaves it and returns nil.
    package mutating func nextName() throws(JSONError) -> Name? {
        if try closes(UInt8(ascii: "}"), isFirst: open.last?.isEmpty ?? true) { return nil }
        guard next() == UInt8(ascii: "\"") else {
            throw peek == nil
                ? ending() : fault("the name of a member is missing, in double quotes")
        }
        let place = place
        let (range, text) = try scanText()
        guard open[open.count - 1].count < memberLimit else {
            throw refusal("an object has more than \(memberLimit) members", place)
        }
        guard open[open.count - 1].insert(foldsCase ? text.map(\.asciiLowercased) : text) else {
            let more = foldsCase ? ", or one that differs only in case" : ""
            throw refusal("duplicate name \"\(Self.shown(text))\"\(more)", place)
        }
        guard next() == UInt8(ascii: ":") else {
            throw peek == nil ? ending() : fault("a colon is missing after a name")
        }
        at += 1
        return Name(text: text, written: bytes[range], place: place)
    }

    /// Reads and decodes a string; `expected` names it in the error.
    package mutating func text(_ expected: String) throws(JSONError) -> [UInt8] {
        guard next() == UInt8(ascii: "\"") else { throw unexpected(expected) }
        return try scanText().text
    }

    /// Appends the next value of any kind, as written.
    package mutating func copyValue(to copy: inout [UInt8]) throws(JSONError) {
        switch next() {
        case UInt8(ascii: "{"): try copyObject(to: &copy)
        case UInt8(ascii: "["): try copyArray(to: &copy)
        case UInt8(ascii: "\""): copy += bytes[try scanText(isWanted: false).range]
        case UInt8(ascii: "t"): try copyWord("true", to: &copy)
        case UInt8(ascii: "f"): try copyWord("false", to: &copy)
        case UInt8(ascii: "n"): try copyWord("null", to: &copy)
        case nil: throw ending()
        default: copy += bytes[try scanNumber()]
        }
    }

    /// Checks that only white space follows.
    package mutating func end() throws(JSONError) {
        invariant(open.isEmpty, "a text ends outside of its objects")
        if next() != nil { throw fault("more text after the object") }
    }

    /// Returns a fault for valid JSON that exceeds a limit, at `place` or at the cursor.
    package func refusal(_ message: String, _ place: Int? = nil) -> JSONError {
        JSONError(place: place ?? self.place, message: message, isRefusal: true)
    }

    // MARK: Objects and arrays

    private mutating func copyObject(to copy: inout [UInt8]) throws(JSONError) {
        try enter()
        copy.append(UInt8(ascii: "{"))
        while let name = try nextName() {
            if copy.last != UInt8(ascii: "{") { copy.append(UInt8(ascii: ",")) }
            copy += name.written
            copy.append(UInt8(ascii: ":"))
            try copyValue(to: &copy)
        }
        copy.append(UInt8(ascii: "}"))
    }

    private mutating func copyArray(to copy: inout [UInt8]) throws(JSONError) {
        try enter()
        copy.append(UInt8(ascii: "["))
        while try !closes(UInt8(ascii: "]"), isFirst: copy.last == UInt8(ascii: "[")) {
            if copy.last != UInt8(ascii: "[") { copy.append(UInt8(ascii: ",")) }
            try copyValue(to: &copy)
        }
        copy.append(UInt8(ascii: "]"))
    }

    mutating func enter() throws(JSONError) {
        guard open.count < depthLimit else {
            throw refusal("nested deeper than \(depthLimit) levels")
        }
        open.append(NamesSeen())
        at += 1
    }

    /// Returns true at the end of the object or array; otherwise skips the comma before a further
    /// element.
    mutating func closes(_ end: UInt8, isFirst: Bool) throws(JSONError) -> Bool {
        guard let byte = next() else { throw ending() }
        if byte == end {
            at += 1
            open.removeLast()
            return true
        }
        if isFirst { return false }
        guard byte == UInt8(ascii: ",") else {
            throw fault("a comma or \(end == UInt8(ascii: "}") ? "}" : "]") is missing")
        }
        at += 1
        if next() == end { throw fault("nothing follows a comma") }
        return false
    }

    // MARK: Bytes

    private var peek: UInt8? { at < bytes.count ? bytes[at] : nil }

    /// Skips white space and returns the next byte without consuming it.
    mutating func next() -> UInt8? {
        while peek?.isJSONBlank == true { at += 1 }
        return peek
    }

    private func fault(_ message: String) -> JSONError { JSONError(place: place, message: message) }

    private func ending() -> JSONError { fault("the text ends before the object does") }

    /// Returns the fault for a value other than the `expected` one.
    private func unexpected(_ expected: String) -> JSONError {
        if peek == nil { return ending() }
        return kind.map { refusal("\(expected), and this is \($0)") } ?? fault(expected)
    }

    /// The kind of value that begins here, for a message; nil if it is not JSON.
    private var kind: String? {
        switch peek {
        case UInt8(ascii: "{"): "an object"
        case UInt8(ascii: "["): "an array"
        case UInt8(ascii: "\""): "a text"
        case UInt8(ascii: "-"), (48...57)?: "a number"
        default: ["true", "false", "null"].first { bytes[at...].starts(with: $0.utf8) }
        }
    }

    private mutating func copyWord(_ word: String, to copy: inout [UInt8]) throws(JSONError) {
        guard bytes[at...].starts(with: word.utf8) else { throw fault("a value is missing") }
        copy += word.utf8
        at += word.utf8.count
    }

    private mutating func scanNumber() throws(JSONError) -> Range<Int> {
        let start = at
        var end = at
        var token = JSONNumberToken()
        bytes.withUnsafeBytes { token.pass($0, &end, to: $0.count) }
        at = end
        guard end > start else { throw fault("a value is missing") }
        guard token.isWhole else { throw fault("a digit is missing in a number") }
        if let byte = peek, byte.isDigit { throw fault("a number with a leading zero") }
        try checkSize(start..<end)
        return start..<end
    }

    /// Refuses numbers that overflow a double: most readers would refuse the whole text (RFC 8259,
    /// section 6).
    private func checkSize(_ range: Range<Int>) throws(JSONError) {
        let text = bytes[range]
        guard text.count > 300 || text.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }),
            Double(String(decoding: text, as: UTF8.self))?.isFinite != true
        else { return }
        throw refusal("a number beyond 1.8e308, which few readers can take", range.lowerBound + 1)
    }

    /// Scans a string with its quotes; `text` is what it says, if it `isWanted`.
    private mutating func scanText(
        isWanted: Bool = true
    ) throws(JSONError) -> (range: Range<Int>, text: [UInt8]) {
        let start = at
        var end = at + 1
        var text: [UInt8] = []
        var token = JSONStringToken()
        let step = bytes.withUnsafeBytes { bytes in
            token.pass(bytes, &end, to: bytes.count) { if isWanted { text += $0 } }
        }
        guard case .end = step else {
            throw JSONError(place: token.start + 1, message: token.problem)
        }
        at = end
        return (start..<end, text)
    }

    /// Returns text from outside, shortened and safe to show in a message.
    package static func shown(_ text: [UInt8]) -> String {
        String(decoding: text.prefix(200), as: UTF8.self).plainWords(atMost: 60)
    }
}

/// The member names seen so far in one object.
private struct NamesSeen: Sendable {
    /// Up to this many names, comparing is faster than hashing; beyond it, it would be quadratic.
    private static let fewLimit = 16

    private var few: [[UInt8]] = []
    private var more: Set<[UInt8]> = []

    var isEmpty: Bool { few.isEmpty }

    var count: Int { few.count + more.count }

    /// Adds a name; returns false for a duplicate.
    mutating func insert(_ name: [UInt8]) -> Bool {
        if few.contains(name) { return false }
        guard few.count == Self.fewLimit else {
            few.append(name)
            return true
        }
        return more.insert(name).inserted
    }
}
