// Where the parts of a JSON text lie, so that records can be kept exactly as they were sent.
import Foundation

/// Finds extents in text that a real parser has accepted already.
struct JSONScanner {
    /// A member of an object: its key, and how key and value were written.
    struct Member {
        var key: String
        var writtenKey: ArraySlice<UInt8>
        var value: ArraySlice<UInt8>
    }

    static func members(_ object: ArraySlice<UInt8>) -> [Member] {
        parts(object).compactMap { part in
            guard let end = stringEnd(part),
                let colon = part[end...].firstIndex(of: UInt8(ascii: ":"))
            else { return nil }
            let written = part[..<end]
            return Member(
                key: text(written),
                writtenKey: written,
                value: trim(part[(colon + 1)...])
            )
        }
    }

    /// The elements of an array.
    static func elements(_ array: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] { parts(array) }

    /// A comma before a closing bracket, which our parser accepts and other programs that read the files do not.
    static func hasTrailingComma(_ text: [UInt8]) -> Bool {
        var index = 0
        var last: UInt8 = 0
        while index < text.count {
            let byte = text[index]
            if byte == UInt8(ascii: "\"") {
                index = stringEnd(text[index...]) ?? text.count
                last = byte
                continue
            }
            let isClosing = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
            if isClosing, last == UInt8(ascii: ",") { return true }
            if !isBlank(byte) { last = byte }
            index += 1
        }
        return false
    }

    /// A string as it reads: `\u0061` is `a`.
    private static func text(_ string: ArraySlice<UInt8>) -> String {
        let plain = String(decoding: string.dropFirst().dropLast(), as: UTF8.self)
        guard string.contains(UInt8(ascii: "\\")) else { return plain }
        let read = try? JSONSerialization.jsonObject(
            with: Data(string),
            options: .fragmentsAllowed
        )
        return read as? String ?? plain
    }

    /// What stands between the commas of the outermost object or array.
    private static func parts(_ text: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var parts: [ArraySlice<UInt8>] = []
        var depth = 0
        var start = text.startIndex
        var index = text.startIndex
        while index < text.endIndex {
            switch text[index] {
            case UInt8(ascii: "\""):
                index = stringEnd(text[index...]) ?? text.endIndex
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                if depth == 1 { start = index + 1 }
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 1 { append(text[start..<index], to: &parts) }
                depth -= 1
            case UInt8(ascii: ",") where depth == 1:
                append(text[start..<index], to: &parts)
                start = index + 1
            default: break
            }
            index += 1
        }
        return parts
    }

    private static func append(_ part: ArraySlice<UInt8>, to parts: inout [ArraySlice<UInt8>]) {
        let part = trim(part)
        if !part.isEmpty { parts.append(part) }
    }

    /// Just after the closing quote of a string at the front.
    private static func stringEnd(_ text: ArraySlice<UInt8>) -> Int? {
        guard text.first == UInt8(ascii: "\"") else { return nil }
        var index = text.startIndex + 1
        while index < text.endIndex {
            if text[index] == UInt8(ascii: "\\") {
                index += 1
            } else if text[index] == UInt8(ascii: "\"") {
                return index + 1
            }
            index += 1
        }
        return nil
    }

    private static func trim(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard let last = text.lastIndex(where: { !isBlank($0) }) else { return [] }
        return text[...last].drop(while: isBlank)
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 32 || byte == 10 || byte == 13 || byte == 9
    }
}
