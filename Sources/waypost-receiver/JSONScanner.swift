// Where the parts of a JSON text lie, so that records can be kept exactly as they were sent.

/// Finds extents in text that a real parser has accepted already.
struct JSONScanner {
    /// The members of an object: each key with the extent of its value.
    static func members(_ object: ArraySlice<UInt8>) -> [(key: String, value: ArraySlice<UInt8>)] {
        parts(object).compactMap { part in
            guard let end = stringEnd(part),
                let colon = part[end...].firstIndex(of: UInt8(ascii: ":"))
            else { return nil }
            let key = String(decoding: part[(part.startIndex + 1)..<(end - 1)], as: UTF8.self)
            return (key, trim(part[(colon + 1)...]))
        }
    }

    /// The elements of an array.
    static func elements(_ array: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] { parts(array) }

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
        let blank: (UInt8) -> Bool = { [9, 10, 13, 32].contains($0) }
        guard let last = text.lastIndex(where: { !blank($0) }) else { return [] }
        return text[...last].drop(while: blank)
    }
}
