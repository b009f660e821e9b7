// Parses a server's answer to a batch while its body arrives.
import Host
import JSON

/// The relevant part of an answer's body, which may have any length.
package struct Reply: Sendable, Equatable {
    package enum Form: Sendable, Equatable {
        /// Empty, or white space.
        case blank
        case json
        /// Truncated JSON.
        case unfinished
        /// Anything else, such as HTML: not from an ingest server.
        case other
    }

    /// The longest tag in characters (Unicode scalars).
    package static let longestTag = 64

    package var form = Form.blank
    /// Records that the server rejected: `rejected`, a number or the length of a list.
    package var rejected = 0
    /// Records that it already had: `duplicates`, likewise.
    package var duplicates = 0

    /// Records that it accepted: `accepted`, likewise; nil if it does not say.
    package var accepted: Int?
    /// The server refuses the batch without naming records: `success` or `accepted` is false, there
    /// is an `error`, `rejected` is not a count, or the whole body is `false` or `null`.
    package var saysNo = false
    /// The answer is for the stream of the batch, not for the device: it names a `stream`.
    package var isOfStream = false
    /// The server takes batches in columns: `columns` is 1.
    package var takesColumns = false
    /// The tag of the server's list of jobs; nil if it has none, or not a valid one.
    package var jobs: String?

    /// Parses a complete body.
    package init(_ body: [UInt8] = []) {
        var scanner = ReplyScanner()
        body.withUnsafeBytes { scanner.append($0) }
        self = scanner.reply
    }

    fileprivate init(form: Form) { self.form = form }

    /// Returns true if accepted, duplicate and rejected records add up to `records`, or are not
    /// counted.
    package func accounts(for records: Int) -> Bool {
        guard let accepted else { return true }
        var left = records
        for count in [accepted, duplicates, rejected] { left -= min(left, count) }
        return left == 0
    }
}

/// Parses a body that arrives in pieces, in constant memory.
struct ReplyScanner {
    private var grammar = JSONGrammar(ReplyFields())

    mutating func append(_ bytes: UnsafeRawBufferPointer) { grammar.append(bytes) }

    /// The body is not JSON, so no ingest server sent it, and the rest need not be read.
    var isBroken: Bool { grammar.isBroken }

    /// The reply, if the body ends here.
    var reply: Reply {
        guard !grammar.isBlank else { return Reply(form: .blank) }
        guard grammar.isWhole else { return Reply(form: isBroken ? .other : .unfinished) }
        var reply = Reply(form: .json)
        grammar.listener.write(into: &reply)
        return reply
    }
}

/// Collects some members of the top-level object; of several with one name, the first counts.
private struct ReplyFields: JSONListener {
    private enum Member: String {
        case rejected, duplicates, accepted, success, error, stream, jobs, columns
    }

    private var values: [Member: ReplyValue] = [:]
    /// The whole body is `false` or `null`.
    private var isNo = false
    /// The beginning of the current member's name, longer than the longest of a `Member`.
    private var name: [UInt8] = []
    private var value = ReplyValue()

    mutating func name(_ piece: UnsafeRawBufferPointer, depth: Int) {
        if depth == 1 { name += piece.prefix(16 - name.count) }
    }

    mutating func began(_ kind: JSONKind, depth: Int) {
        if depth == 0 { isNo = kind == .no || kind == .null }
        if depth == 1 { value = ReplyValue(kind) }
        if depth == 2 { value.elements += 1 }
    }

    mutating func content(_ piece: UnsafeRawBufferPointer, depth: Int) {
        if depth == 1 { value.receive(piece) }
    }

    mutating func ended(depth: Int) {
        guard depth == 1 else { return }
        if let member = Member(rawValue: String(decoding: name, as: UTF8.self)) {
            values[member] = values[member] ?? value
        }
        name = []
    }

    func write(into reply: inout Reply) {
        reply.rejected = values[.rejected]?.count ?? 0
        reply.duplicates = values[.duplicates]?.count ?? 0
        reply.accepted = values[.accepted]?.count
        reply.isOfStream = values[.stream]?.isSomething == true
        reply.jobs = values[.jobs]?.tag
        reply.takesColumns = values[.columns].map { $0.kind == .number && $0.count == 1 } ?? false
        let rejected = values[.rejected] ?? ReplyValue()
        reply.saysNo =
            isNo || values[.success]?.isNo == true || values[.accepted]?.kind == .no
            || values[.error]?.isSomething == true || rejected.count == nil && rejected.isSomething
    }
}

/// A member's value, as a count and as a yes or no.
private struct ReplyValue {
    let kind: JSONKind
    /// The elements of a list or an object; 1 for a text that is not empty.
    var elements = 0
    private var digits: [UInt8] = []
    /// The beginning of a text, longer than the longest tag.
    private var text: [UInt8] = []
    private var isAboveZero = false
    private var isInPower = false

    init(_ kind: JSONKind = .null) { self.kind = kind }

    /// Takes a piece of a text or of a number.
    mutating func receive(_ piece: UnsafeRawBufferPointer) {
        guard kind == .number else {
            text += piece.prefix(4 * Reply.longestTag + 1 - text.count)
            return elements = 1
        }
        for byte in piece {
            if byte == 0x45 || byte == 0x65 { isInPower = true }
            if !isInPower, (49...57).contains(byte) { isAboveZero = true }
        }
        // Forty digits show how large a number is.
        digits += piece.prefix(40 - digits.count)
    }

    /// The count; nil if the value is neither a number nor a list.
    var count: Int? {
        switch kind {
        case .array: elements
        case .number where isAboveZero && digits.first != UInt8(ascii: "-"):
            max(1, Int(clamping: Double(String(decoding: digits, as: UTF8.self)) ?? 1))
        case .number: 0
        default: nil
        }
    }

    /// The text, if it is one that a tag may be.
    var tag: String? {
        let tag = String(decoding: text, as: UTF8.self)
        return kind == .text && tag.isPrintable(atMost: Reply.longestTag) ? tag : nil
    }

    var isNo: Bool { kind == .no || kind == .number && !isAboveZero }

    /// The value is not `null`, `false`, empty or zero; an empty object is an error that failed to
    /// encode.
    var isSomething: Bool {
        switch kind {
        case .null, .no: false
        case .yes, .object: true
        case .text, .array: elements > 0
        case .number: isAboveZero
        }
    }
}

extension Int {
    /// Rounds towards zero, clamped to the range of Int.
    fileprivate init(clamping number: Double) {
        self = number >= 9e18 ? .max : number <= -9e18 ? .min : Int(number)
    }
}
