// Texts inside texts: the few functions that would bring Swift's regular expressions along (Package.swift).

extension Collection where Element: Equatable {
    /// The first place where `part` stands, element by element; an empty one stands at the start.
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

    /// With `new` in each place of `text`, which is not empty.
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
