// Substring search and replacement that do not link Swift's regular expressions (Package.swift).

extension Collection where Element: Equatable {
    /// Returns the first range equal to `part`; an empty `part` matches at the start.
    package func firstRange(ofPart part: some Collection<Element>) -> Range<Index>? {
        var start = startIndex
        while !self[start...].starts(with: part) {
            guard start != endIndex else { return nil }
            formIndex(after: &start)
        }
        return start..<index(start, offsetBy: part.count)
    }
}

extension StringProtocol {
    package func contains(text: String) -> Bool { firstRange(ofPart: text) != nil }

    /// Returns the text with `new` for each occurrence of `text`, which must not be empty.
    package func replacing(text: String, with new: String) -> String {
        var replaced = ""
        var rest = self[...]
        while let range = rest.firstRange(ofPart: text) {
            replaced += rest[..<range.lowerBound] + new
            rest = rest[range.upperBound...]
        }
        return replaced + rest
    }
}
