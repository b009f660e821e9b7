// Text helpers for the commands' screens: columns, wrapped lines, times and sizes.
import Host

extension String {
    /// Returns the text padded to a column, or cut with `…`; control characters become blanks.
    package func column(_ width: Int) -> String {
        let text = blanked
        return text.count >= width
            ? String(text.prefix(width - 2)) + "… "
            : text + String(repeating: " ", count: width - text.count)
    }

    /// Returns the text aligned to the right of a column.
    func rightColumn(_ width: Int) -> String {
        String(repeating: " ", count: max(0, width - count)) + self
    }

    /// Splits the text into lines of at most `width` visible characters.
    ///
    /// A longer word gets a separate line, or is broken with `breakingWords`.
    package func wrapped(to width: Int, breakingWords: Bool = false) -> [String] {
        var lines: [String] = []
        for word in blanked.split(whereSeparator: \.isWhitespace) {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = "\(last) \(word)"
                continue
            }
            var rest = word
            while breakingWords, rest.count > width {
                lines.append(String(rest.prefix(width)))
                rest = rest.dropFirst(width)
            }
            lines.append(String(rest))
        }
        return lines
    }
}

/// Formats an RFC 3339 timestamp as `2026-11-21 07:30`.
func minute(of time: String) -> String {
    time.prefix(16).split(separator: "T").joined(separator: " ")
}

/// Formats two timestamps as `2026-11-21 07:30 to 07:45 UTC`, with both days if they differ.
func period(_ from: String, _ to: String) -> String {
    let end = from.prefix(10) == to.prefix(10) ? String(minute(of: to).suffix(5)) : minute(of: to)
    return "\(minute(of: from)) to \(end) UTC"
}

/// Formats a number of seconds as `90 s`, `15 min`, `30 h` or `3 d`.
package func span(_ seconds: Int) -> String {
    switch seconds {
    case ..<120: "\(seconds) s"
    case ..<7200: "\(seconds / 60) min"
    case ..<172_800: "\(seconds / 3600) h"
    default: "\(seconds / 86_400) d"
    }
}
