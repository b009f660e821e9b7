// A writer of HTML that escapes everything from outside.
import Host
import ServerBase

/// HTML text; markup can only come from the program (`StaticString`), all else is escaped.
///
/// Names and values come from the network: a device may call itself `<script>`.
package struct HTML {
    /// An attribute; its value is escaped.
    package typealias Attribute = (name: StaticString, value: String)

    private(set) var bytes: [UInt8] = []
    /// The zone of the page's times; nil if it has none: they are then in UTC, and the script of a
    /// page shows them in the browser's zone.
    var zone: TimeZoneRules?

    /// Adds markup of the program.
    mutating func raw(_ markup: StaticString) {
        markup.withUTF8Buffer { bytes += $0 }
    }

    /// Adds text from anywhere; invisible and direction-changing characters become blanks.
    package mutating func text(_ text: String) {
        // Most text is plain ASCII and needs no check of each character.
        let isPlain = text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        for byte in (isPlain ? text : text.blanked).utf8 { add(byte) }
    }

    /// Adds `<name …>`, the content that `body` adds, and `</name>`.
    mutating func element(
        _ name: StaticString,
        _ attributes: [Attribute] = [],
        _ body: (inout HTML) -> Void
    ) {
        open(name, attributes)
        body(&self)
        raw("</")
        raw(name)
        raw(">")
    }

    package mutating func element(_ name: StaticString, _ attributes: [Attribute], _ text: String) {
        element(name, attributes) { $0.text(text) }
    }

    /// Adds lines of text one below the other.
    mutating func lines(_ text: String) {
        element("pre") { $0.multiline(text) }
    }

    /// Adds text of several lines; of the invisible characters, line feeds and tabs stay.
    mutating func multiline(_ lines: String) {
        var run: [Unicode.Scalar] = []
        for scalar in lines.unicodeScalars {
            guard scalar == "\n" || scalar == "\t" else {
                run.append(scalar)
                continue
            }
            text(String(String.UnicodeScalarView(run)))
            run = []
            if scalar == "\n" { raw("\n") } else { raw("\t") }
        }
        text(String(String.UnicodeScalarView(run)))
    }

    mutating func element(_ name: StaticString, _ text: String) { element(name, [], text) }

    /// Adds an element without content and end tag.
    package mutating func open(_ name: StaticString, _ attributes: [Attribute] = []) {
        raw("<")
        raw(name)
        for (name, value) in attributes {
            raw(" ")
            raw(name)
            raw("=\"")
            text(value)
            raw("\"")
        }
        raw(">")
    }

    private mutating func add(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "&"): raw("&amp;")
        case UInt8(ascii: "<"): raw("&lt;")
        case UInt8(ascii: ">"): raw("&gt;")
        case UInt8(ascii: "\""): raw("&quot;")
        case UInt8(ascii: "'"): raw("&#39;")
        default: bytes.append(byte)
        }
    }
}
