// HTML as text that cannot be anything but what was meant.
import Host

/// Markup comes from the program alone (`StaticString`); everything else is escaped on its way in.
///
/// Names and values come from the network: a device may call itself `<script>`.
struct HTML {
    /// An attribute; its value is escaped.
    typealias Attribute = (name: StaticString, value: String)

    private(set) var bytes: [UInt8] = []

    /// Markup of the program's own.
    mutating func raw(_ markup: StaticString) {
        markup.withUTF8Buffer { bytes += $0 }
    }

    /// Text of anybody's; what is invisible or turns text around becomes a blank.
    mutating func text(_ text: String) {
        // Most is plain, and what is plain needs no look at each character's kind.
        let isPlain = text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        for byte in (isPlain ? text : text.blanked).utf8 { add(byte) }
    }

    /// `<name …>`, then what `body` adds, then `</name>`.
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

    mutating func element(_ name: StaticString, _ attributes: [Attribute], _ text: String) {
        element(name, attributes) { $0.text(text) }
    }

    mutating func element(_ name: StaticString, _ text: String) { element(name, [], text) }

    /// An element that has nothing in it and no end.
    mutating func open(_ name: StaticString, _ attributes: [Attribute] = []) {
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
