// The lines of minisign's files: comments and base64.
import CCrypto
import Host

/// A reader of one file of minisign, line by line.
///
/// Lines end with LF or CR LF, as minisign itself reads them; the last one may end without either.
struct MinisignLines {
    /// The files have 110 to 400 bytes, if their comments are short.
    static let maxBytes = 1024

    static let untrusted = "untrusted comment: "
    static let trusted = "trusted comment: "

    /// The number of lines in the file.
    let count: Int
    private let lines: [[UInt8]]
    /// The number of lines already read.
    private var position = 0
    /// The kind of file, for messages: "minisign signature".
    private let kind: String

    /// Throws if the text is longer than `maxBytes` or has another number of lines.
    ///
    /// `expected`: the allowed numbers of lines; messages name the largest.
    init(_ text: String, of kind: String, expected: ClosedRange<Int>) throws(Failure) {
        let size = text.utf8.count
        guard size <= Self.maxBytes else {
            throw Failure("the \(kind) has \(size) bytes; at most \(Self.maxBytes) are allowed")
        }
        var lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        // The text after the last line's LF.
        if lines.last?.isEmpty == true { lines.removeLast() }
        guard expected.contains(lines.count) else {
            throw Failure(
                "the \(kind) has \(lines.count) lines, not \(expected.upperBound); "
                    + "use the whole file that minisign wrote"
            )
        }
        self.lines = lines.map { Array($0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0) }
        self.kind = kind
        count = lines.count
    }

    /// Returns the next line without `prefix`, with which it must begin.
    mutating func comment(_ prefix: String) throws(Failure) -> String {
        let line = next()
        guard line.starts(with: prefix.utf8) else {
            throw Failure("line \(position) of the \(kind) does not begin with \"\(prefix)\"")
        }
        let comment = String(decoding: line.dropFirst(prefix.utf8.count), as: UTF8.self)
        guard Self.isAllowed(comment) else {
            throw Failure("line \(position) of the \(kind) has invisible characters")
        }
        return comment
    }

    /// Returns the `length` bytes that the next line has in base64.
    mutating func base64(length: Int) throws(Failure) -> [UInt8] {
        guard let bytes = decodedBase64(next()), bytes.count == length else {
            throw Failure(
                "line \(position) of the \(kind) is not \(length) bytes in base64; "
                    + "copy the file again"
            )
        }
        return bytes
    }

    /// Returns whether a comment can stand in a file and on a terminal.
    ///
    /// minisign's own comments have tabs. minisign refuses control characters; this also refuses
    /// other invisible ones, such as those that reverse text.
    static func isAllowed(_ comment: String) -> Bool {
        comment.unicodeScalars.allSatisfy { !$0.isInvisible || $0 == "\t" }
    }

    /// Returns the next line; an empty one after the last.
    private mutating func next() -> [UInt8] {
        defer { position += 1 }
        return position < lines.count ? lines[position] : []
    }
}

/// Returns the bytes of a base64 text (RFC 4648, section 4); nil if it is not the canonical one.
func decodedBase64(_ text: [UInt8]) -> [UInt8]? {
    guard !text.isEmpty, text.count % 4 == 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: text.count / 4 * 3)
    guard EVP_DecodeBlock(&bytes, text, Int32(text.count)) == bytes.count else { return nil }
    // libcrypto decodes the padding as zeros.
    bytes.removeLast(min(2, text.reversed().prefix { $0 == UInt8(ascii: "=") }.count))
    // libcrypto also accepts white space at the ends and stray bits after the last byte.
    return encodedBase64(bytes).utf8.elementsEqual(text) ? bytes : nil
}

/// Returns bytes as base64 with padding, on one line.
func encodedBase64(_ bytes: [UInt8]) -> String {
    // libcrypto ends the text with a zero.
    var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
    EVP_EncodeBlock(&text, bytes, Int32(bytes.count))
    return String(decoding: text.dropLast(), as: UTF8.self)
}
