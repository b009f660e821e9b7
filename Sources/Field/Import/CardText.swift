// Decodes text from any editor on any system to UTF-8 with plain line endings.

/// Why a file of a card cannot be used, and the remedy.
struct CardError: Error, Equatable {
    var line: Int?
    var what: String
    var remedy: String

    init(_ what: String, _ remedy: String, line: Int? = nil) {
        (self.what, self.remedy, self.line) = (what, remedy, line)
    }

    static let halfWritten =
        "save it again, and eject the card on the computer before you pull it out"
}

enum CardText {
    /// Decodes a file: UTF-8 or UTF-16, with or without a byte order mark, or Windows-1252.
    ///
    /// In the result, lines end with a line feed and are numbered as in the editor.
    static func decode(_ bytes: [UInt8]) throws(CardError) -> String {
        guard !bytes.isEmpty else { throw CardError("is empty", CardError.halfWritten) }
        if let kind = document(bytes) {
            throw CardError("is \(kind)", "save it as plain text, such as Notepad does")
        }
        let text = try characters(bytes)
        if let line = line(of: "\0", in: text) {
            let what = "holds zero bytes: it was not written to its end"
            throw CardError(what, CardError.halfWritten, line: line)
        }
        if let line = line(of: "\u{FFFD}", in: text) {
            throw CardError(
                "is damaged: holds no characters there",
                CardError.halfWritten,
                line: line
            )
        }
        return withPlainLines(text)
    }

    /// Returns the name of a document format that word processors and browsers save, or nil.
    private static func document(_ bytes: [UInt8]) -> String? {
        let start = String(decoding: bytes.prefix(64), as: UTF8.self).lowercased()
        if start.hasPrefix("{\\rtf") { return "a formatted document (RTF)" }
        if start.hasPrefix("pk\u{3}\u{4}") { return "a word processor's document or a ZIP archive" }
        let trimmed = start.drop { $0.isWhitespace || $0 == "\u{FEFF}" }
        if trimmed.hasPrefix("<!doctype") || trimmed.hasPrefix("<html") { return "a web page" }
        return nil
    }

    private static func characters(_ bytes: [UInt8]) throws(CardError) -> String {
        if bytes.starts(with: [0xFF, 0xFE]) { return try wide(bytes.dropFirst(2), low: 0) }
        if bytes.starts(with: [0xFE, 0xFF]) { return try wide(bytes.dropFirst(2), low: 1) }
        if let low = unmarkedWide(bytes) { return try wide(bytes[...], low: low) }
        let plain = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        let text = String(decoding: plain, as: UTF8.self)
        // Decoding changes invalid UTF-8: then the text is Windows-1252 ("ANSI").
        return text.utf8.elementsEqual(plain) ? text : windows(plain)
    }

    /// Decodes UTF-16; `low`: the index of the lower byte in each pair.
    private static func wide(_ bytes: ArraySlice<UInt8>, low: Int) throws(CardError) -> String {
        guard bytes.count % 2 == 0 else {
            throw CardError("ends within a character", CardError.halfWritten)
        }
        let pairs = Array(bytes)
        let units = stride(from: 0, to: pairs.count, by: 2).map {
            UInt16(pairs[$0 + low]) | UInt16(pairs[$0 + 1 - low]) << 8
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// Detects UTF-16 without a byte order mark: Latin text has a zero in every other byte.
    private static func unmarkedWide(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4, bytes.count % 2 == 0 else { return nil }
        let zeros = bytes.indices.reduce(into: [0, 0]) { zeros, index in
            if bytes[index] == 0 { zeros[index % 2] += 1 }
        }
        let enough = bytes.count / 2 * 9 / 10
        if zeros[1] > enough, zeros[0] == 0 { return 0 }
        return zeros[0] > enough && zeros[1] == 0 ? 1 : nil
    }

    /// Bytes 0x80 to 0x9F of Windows-1252 (Unicode's CP1252.TXT); the others are those of Latin 1.
    private static let upper: [UInt32] = [
        0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x8D, 0x017D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013,
        0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
    ]

    private static func windows(_ bytes: ArraySlice<UInt8>) -> String {
        var text = String.UnicodeScalarView()
        for byte in bytes {
            let value = 0x80..<0xA0 ~= byte ? upper[Int(byte) - 0x80] : UInt32(byte)
            text.append(Unicode.Scalar(value) ?? "?")
        }
        return String(text)
    }

    private static func withPlainLines(_ text: String) -> String {
        var plain = String.UnicodeScalarView()
        var before: Unicode.Scalar?
        for scalar in text.unicodeScalars {
            if scalar == "\r" || scalar == "\n" && before != "\r" {
                plain.append("\n")
            } else if scalar != "\n" {
                plain.append(scalar)
            }
            before = scalar
        }
        return String(plain)
    }

    /// Returns the line number of the first such character, or nil.
    private static func line(of scalar: Unicode.Scalar, in text: String) -> Int? {
        let scalars = text.unicodeScalars
        guard let place = scalars.firstIndex(of: scalar) else { return nil }
        return 1 + withPlainLines(String(scalars[..<place])).utf8.count(where: { $0 == 10 })
    }
}
