// What a server says of a batch in its answer's body, found while the body streams in.
import JSON

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

    /// Records that it took: `accepted`, likewise; nil where it does not say.
    package var accepted: Int?
    /// It says that it does not have the records, and not which: `success` is false, there is an `error`, `accepted` is
    /// false, `rejected` is not a count, or all of it is `false` or `null`.
    package var saysNo = false

    /// Of a body that is all there.
    package init(_ body: [UInt8] = []) {
        var scanner = ReplyScanner()
        body.withUnsafeBytes { scanner.append($0) }
        self = scanner.reply
    }

    fileprivate init(form: Form) { self.form = form }

    /// Whether it says of each of so many records that it was there, taken or rejected, or does not count them.
    package func accounts(for records: Int) -> Bool {
        guard let accepted else { return true }
        var left = records
        for count in [accepted, duplicates, rejected] { left -= min(left, count) }
        return left == 0
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
        guard !grammar.isBlank else { return Reply(form: .blank) }
        guard grammar.isWhole else { return Reply(form: isBroken ? .other : .unfinished) }
        var reply = Reply(form: .json)
        grammar.listener.write(into: &reply)
        return reply
    }
}

/// Picks some members out of the object at the top; of several with one name the first counts.
private struct ReplyFields: JSONListener {
    private enum Member: String, CaseIterable {
        case rejected, duplicates, accepted, success, error

        static let names = allCases.map { (member: $0, name: Array($0.rawValue.utf8)) }
    }

    private var values: [Member: ReplyValue] = [:]
    /// All of it is `false` or `null`.
    private var isNo = false
    /// How much of the name there is, and which of ours it may still be.
    private var length = 0
    private var candidates: [(member: Member, name: [UInt8])] = []
    private var value = ReplyValue()

    func wantsNames(depth: Int) -> Bool { depth == 1 }

    mutating func name(_ byte: UInt8, depth: Int) {
        guard depth == 1 else { return }
        if length == 0 { candidates = Member.names }
        candidates.removeAll { $0.name.at(length) != byte }
        length += 1
    }

    mutating func nameEnded(depth: Int) {
        guard depth == 1 else { return }
        candidates.removeAll { $0.name.count != length }
        length = 0
    }

    mutating func began(_ kind: JSONKind, depth: Int) {
        if depth == 0 { isNo = kind == .no || kind == .null }
        if depth == 1 { value = ReplyValue(kind) }
        if depth == 2 { value.elements += 1 }
    }

    mutating func number(_ byte: UInt8, depth: Int) {
        if depth == 1 { value.number(byte) }
    }

    mutating func filled(depth: Int) {
        if depth == 1 { value.elements = 1 }
    }

    mutating func ended(depth: Int) {
        guard depth == 1 else { return }
        for (member, _) in candidates { values[member] = values[member] ?? value }
        candidates = []
    }

    func write(into reply: inout Reply) {
        reply.rejected = values[.rejected]?.count ?? 0
        reply.duplicates = values[.duplicates]?.count ?? 0
        reply.accepted = values[.accepted]?.count
        let rejected = values[.rejected] ?? ReplyValue()
        reply.saysNo =
            isNo || values[.success]?.isNo == true || values[.accepted]?.kind == .no
            || values[.error]?.isSomething == true || rejected.count == nil && rejected.isSomething
    }
}

/// A member's value, as a count and as yes or no.
private struct ReplyValue {
    private(set) var kind = JSONKind.null
    /// Of a list or an object; 1 for a text that is not empty.
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

    /// nil for what is neither a number nor a list.
    var count: Int? {
        switch kind {
        case .array: elements
        case .number where isAboveZero && digits.first != UInt8(ascii: "-"):
            max(1, Int(clamping: Double(String(decoding: digits, as: UTF8.self)) ?? 1))
        case .number: 0
        default: nil
        }
    }

    var isNo: Bool { kind == .no || kind == .number && !isAboveZero }

    /// Neither `null` nor `false`, empty or zero; an empty object is an error that did not become JSON.
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
    /// The nearest whole number that there is.
    fileprivate init(clamping number: Double) {
        self = number >= 9e18 ? .max : number <= -9e18 ? .min : Int(number)
    }
}

extension [UInt8] {
    fileprivate func at(_ place: Int) -> UInt8? { place < count ? self[place] : nil }
}
