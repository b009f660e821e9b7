// What a server says of a batch in its answer's body, found while the body streams in.

/// The part of an answer's body that matters; bodies have any length.
package struct Reply: Sendable, Equatable {
    package enum Form: Sendable, Equatable {
        /// Nothing, or blanks.
        case blank
        case json
        /// JSON that stops in its middle.
        case unfinished
        /// HTML and the like: not from an ingest server.
        case other
    }

    package var form = Form.blank
    /// Records that the server did not take: `rejected`, a number or the length of a list.
    package var rejected = 0
    /// Records that it had already: `duplicates`, likewise.
    package var duplicates = 0

    /// Of a body that is all there.
    package init(_ body: [UInt8] = []) {
        var scanner = ReplyScanner()
        body.withUnsafeBytes { scanner.append($0) }
        self = scanner.reply
    }

    fileprivate init(form: Form, rejected: Int, duplicates: Int) {
        (self.form, self.rejected, self.duplicates) = (form, rejected, duplicates)
    }
}

/// Reads a body that comes in pieces; takes the same memory for all.
struct ReplyScanner {
    private var grammar = JSONGrammar(ReplyFields())

    mutating func append(_ bytes: UnsafeRawBufferPointer) { grammar.append(bytes) }

    /// It is no JSON, so no ingest server sent it, and the rest need not be read.
    var isBroken: Bool { grammar.isBroken }

    /// What it has come to, should this be the end.
    var reply: Reply {
        guard !grammar.isBlank else { return Reply(form: .blank, rejected: 0, duplicates: 0) }
        guard grammar.isWhole else {
            return Reply(form: isBroken ? .other : .unfinished, rejected: 0, duplicates: 0)
        }
        let fields = grammar.listener
        return Reply(
            form: .json,
            rejected: fields.rejected ?? 0,
            duplicates: fields.duplicates ?? 0
        )
    }
}

/// Picks two members out of the object at the top; of several with one name the first counts.
private struct ReplyFields: JSONListener {
    private static let names = (
        rejected: Array("rejected".utf8), duplicates: Array("duplicates".utf8)
    )

    private(set) var rejected: Int?
    private(set) var duplicates: Int?
    /// How much of the name there is, and which of ours it may still be.
    private var length = 0
    private var mayBe = (rejected: false, duplicates: false)
    private var value = ReplyValue()

    func wantsNames(depth: Int) -> Bool { depth == 1 }

    mutating func name(_ byte: UInt8, depth: Int) {
        guard depth == 1 else { return }
        if length == 0 { mayBe = (true, true) }
        mayBe.rejected = mayBe.rejected && Self.names.rejected.at(length) == byte
        mayBe.duplicates = mayBe.duplicates && Self.names.duplicates.at(length) == byte
        length += 1
    }

    mutating func nameEnded(depth: Int) {
        guard depth == 1 else { return }
        mayBe.rejected = mayBe.rejected && length == Self.names.rejected.count
        mayBe.duplicates = mayBe.duplicates && length == Self.names.duplicates.count
        length = 0
    }

    mutating func began(_ kind: JSONKind, depth: Int) {
        if depth == 1 { value = ReplyValue(kind) }
        if depth == 2 { value.elements += 1 }
    }

    mutating func number(_ byte: UInt8, depth: Int) {
        if depth == 1 { value.number(byte) }
    }

    mutating func ended(depth: Int) {
        guard depth == 1 else { return }
        if mayBe.rejected { rejected = rejected ?? value.count }
        if mayBe.duplicates { duplicates = duplicates ?? value.count }
        mayBe = (false, false)
    }
}

/// A member's value as a count.
private struct ReplyValue {
    private var kind = JSONKind.word
    /// Of a list; the members of an object, which do not count.
    var elements = 0
    private var digits: [UInt8] = []
    private var isAboveZero = false
    private var isInPower = false

    init() {}

    init(_ kind: JSONKind) {
        self.kind = kind
    }

    mutating func number(_ byte: UInt8) {
        if byte == 0x45 || byte == 0x65 { isInPower = true }
        if !isInPower, (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(byte) { isAboveZero = true }
        // Forty digits are enough to know how large a number is.
        if digits.count < 40 { digits.append(byte) }
    }

    var count: Int {
        switch kind {
        case .array: elements
        case .number where isAboveZero && digits.first != UInt8(ascii: "-"):
            max(1, Int(clamping: Double(String(decoding: digits, as: UTF8.self)) ?? 1))
        default: 0
        }
    }
}

extension Int {
    /// The nearest whole number that there is.
    fileprivate init(clamping number: Double) {
        self = number >= 9e18 ? .max : number <= -9e18 ? .min : Int(number)
    }
}

extension [UInt8] {
    fileprivate func at(_ place: Int) -> UInt8? { place < count ? self[place] : nil }
}
