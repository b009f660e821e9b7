// Topic filters: which topics a subscription is for (MQTT 3.1.1, section 4.7).
import Host

/// A topic filter such as `tele/+/SENSOR` or `rtl_433/#`.
package struct TopicFilter: Sendable, Equatable {
    package let text: String
    private let levels: [Substring]

    /// The longest filter in bytes.
    package static let limit = 256

    /// Creates a filter; nil if `problem(with:)` has an objection.
    package init?(_ text: String) {
        guard Self.problem(with: text) == nil else { return nil }
        self.text = text
        levels = text.split(separator: "/", omittingEmptySubsequences: false)
    }

    /// Returns why a text is not a filter that this client subscribes to; nil if it is.
    @Sendable package static func problem(with text: String) -> String? {
        let shown = "\"\(printable(text))\""
        guard !text.isEmpty else { return "a topic filter is empty" }
        if text.utf8.count > limit { return "\(shown) is longer than \(limit) bytes" }
        if text.unicodeScalars.contains(where: { $0.value < 32 || (127...159).contains($0.value) })
        {
            return "\(shown) holds a control character"
        }
        let levels = text.split(separator: "/", omittingEmptySubsequences: false)
        if levels[0] == "$share" {
            return "\(shown) is a shared subscription, whose messages other clients may get"
        }
        if levels.contains(where: {
            $0.utf8.count > 1 && $0.utf8.contains { $0 == 0x23 || $0 == 0x2B }
        }) {
            return "\(shown) has + or # beside other characters; each is a whole level, as in a/+/b"
        }
        if levels.dropLast().contains("#") { return "\(shown) has # before its last level" }
        return nil
    }

    /// Returns whether a topic is one of those that the filter is for.
    package func matches(_ topic: String) -> Bool {
        let names = topic.split(separator: "/", omittingEmptySubsequences: false)
        // A wildcard does not stand for the broker's own topics ($SYS).
        if names[0].utf8.first == 0x24, levels[0] == "#" || levels[0] == "+" { return false }
        return Self.agree(levels, names)
    }

    /// Returns whether some topic matches both filters.
    package func overlaps(_ other: Self) -> Bool { Self.agree(levels, other.levels) }

    /// Walks two lists of levels; either may hold wildcards.
    private static func agree(_ one: [Substring], _ two: [Substring]) -> Bool {
        for index in 0..<max(one.count, two.count) {
            let first = index < one.count ? one[index] : nil
            let second = index < two.count ? two[index] : nil
            // `a/#` is also for `a` itself.
            if first == "#" || second == "#" { return true }
            guard let first, let second, first == "+" || second == "+" || first == second else {
                return false
            }
        }
        return true
    }
}
