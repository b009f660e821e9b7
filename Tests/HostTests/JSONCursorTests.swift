// The walk over JSON from outside: what is taken byte for byte, and what is refused in which words.
import Testing

@testable import JSON

@Suite struct JSONCursorTests {
    private func copy(_ text: String, depth: Int = 32) -> Result<String, JSONError> {
        copy(Array(text.utf8), depth: depth)
    }

    private func copy(_ bytes: [UInt8], depth: Int = 32) -> Result<String, JSONError> {
        var cursor = JSONCursor(bytes, depthLimit: depth)
        var copy: [UInt8] = []
        do throws(JSONError) {
            try cursor.copyValue(to: &copy)
            try cursor.end()
            return .success(String(decoding: copy, as: UTF8.self))
        } catch {
            return .failure(error)
        }
    }

    @Test(arguments: [
        "{}", "[]", "0", "-0", "-0.0", "1.50", "1e-400", "1.7e308", "-12.5E+07",
        "123456789012345678901234567890",
        "0.1000000000000000055511151231257827", "true", "false", "null", "\"\"",
        #""a\"\\\/\b\f\n\r\té€😀""#, #""\u0000\uD83D\uDE00\ud83d\ude00\u00e9""#, "\"a  b\u{7F}\"",
        #"{"a":1,"b":[1,2,{"a":{}}],"":null}"#, "[[],{},[[]]]", #"{"a":1,"A":2,"a ":3}"#,
        // Names that a person reads alike are other names.
        "{\"\u{E9}\":1,\"e\u{301}\":2}",
    ])
    func value_isCopiedAsItIsWritten(text: String) {
        #expect(copy(text) == .success(text))
    }

    @Test func blanks_areDroppedBetweenPartsAndKeptInTexts() {
        #expect(
            copy(" \t\r\n{ \"a b\" : [ 1 , 2.50 ] ,\n\"c\":\t\" d \" } \r")
                == .success(#"{"a b":[1,2.50],"c":" d "}"#)
        )
    }

    @Test(arguments: [
        ("", 1, "the text ends before the object does"),
        ("{", 2, "the text ends before the object does"),
        ("[1", 3, "the text ends before the object does"),
        ("{\"a\"", 5, "the text ends before the object does"),
        ("\"a", 3, "the text ends before its closing quote"),
        ("{a:1}", 2, "the name of a member is missing, in double quotes"),
        ("{1:1}", 2, "the name of a member is missing, in double quotes"),
        ("{'a':1}", 2, "the name of a member is missing, in double quotes"),
        ("{\"a\" 1}", 6, "a colon is missing after a name"),
        ("{\"a\":}", 6, "a value is missing"), ("[,1]", 2, "a value is missing"),
        ("[1 2]", 4, "a comma or ] is missing"), ("[1}", 3, "a comma or ] is missing"),
        ("{\"a\":1]", 7, "a comma or } is missing"),
        ("{\"a\":1,}", 8, "nothing follows a comma"),
        ("[1,]", 4, "nothing follows a comma"),
        ("{} {}", 4, "more text after the object"), ("1 x", 3, "more text after the object"),
        ("01", 2, "a number with a leading zero"),
        ("-", 2, "a digit is missing in a number"), ("1.", 3, "a digit is missing in a number"),
        ("1e", 3, "a digit is missing in a number"), ("-x", 2, "a digit is missing in a number"),
        ("+1", 1, "a value is missing"), (".5", 1, "a value is missing"),
        ("NaN", 1, "a value is missing"), ("Infinity", 1, "a value is missing"),
        ("tru", 1, "a value is missing"), ("True", 1, "a value is missing"),
        ("// x\n1", 1, "a value is missing"),
        ("\"\n\"", 2, "a control character in a text; write it as an escape"),
        ("\"\\x\"", 2, "no such escape"), ("\"\\u12G4\"", 2, "\\u wants four hexadecimal digits"),
        ("\"\\u12", 2, "\\u wants four hexadecimal digits"),
        ("\"\\ud83d\"", 2, "unpaired surrogate"),
        ("\"\\ud83d\\u0041\"", 2, "unpaired surrogate"),
        ("\"\\ude00\\ud83d\"", 2, "unpaired surrogate"),
        ("\"\\", 2, "the text ends before the object does"),
        ("\u{FEFF}{}", 1, "a value is missing"),
    ])
    func noJSON_isToldWithItsPlace(text: String, place: Int, message: String) {
        #expect(copy(text) == .failure(JSONError(place: place, message: message)))
        #expect("\(JSONError(place: 3, message: "x"))" == "not JSON at byte 3: x")
    }

    /// Overlong forms, halves of surrogate pairs, codes that are none, sequences cut short.
    @Test(
        arguments: [
            [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x9F, 0x80], [0xED, 0xA0, 0x80],
            [0xF0, 0x8F, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xC3], [0xE2, 0x82],
            [0xF0, 0x9F, 0x98], [0xE2, 0x28, 0xA1], [0xC3, 0x22],
        ] as [[UInt8]]
    )
    func bytesThatAreNoText_areRefused(bytes: [UInt8]) {
        let quoted = [0x22] + bytes + [0x22]
        #expect(copy(quoted) == .failure(JSONError(place: 2, message: "bytes that are not UTF-8")))
        #expect(copy([0x22] + bytes).isFailure)
    }

    @Test(arguments: [
        (#"{"a":1,"a":2}"#, "a"), (#"{"a":1,"\u0061":2}"#, "a"), (#"{"":1,"":2}"#, ""),
        (#"{"x":[{"é":1,"\u00e9":2}]}"#, "é"), (#"{"😀":1,"\ud83d\ude00":2}"#, "😀"),
    ])
    func nameThatStandsTwice_isRefused(text: String, name: String) {
        guard case .failure(let fault) = copy(text) else { return #expect(Bool(false)) }
        #expect(fault.isRefusal)
        #expect(fault.message == "duplicate name \"\(name)\"")
    }

    /// Few names are compared and many hashed: the end of the few is a place to forget one.
    @Test(arguments: [2, 15, 16, 17, 18, 40])
    func nameThatStandsTwiceAmongMany_isRefused(count: Int) {
        let names = (0..<count).map { "\"name\($0)\":0" }
        let once = "{" + names.joined(separator: ",") + "}"
        #expect(copy(once) == .success(once))
        for place in 0..<count {
            let twice = "{" + (names + [names[place]]).joined(separator: ",") + "}"
            guard case .failure(let fault) = copy(twice) else { return #expect(Bool(false)) }
            #expect(fault.message == "duplicate name \"name\(place)\"")
        }
    }

    @Test func numberThatFewReadersTake_isRefused() {
        for text in ["1e309", "-1e999", "1" + String(repeating: "0", count: 400), "0.1E+400"] {
            let message = "a number beyond 1.8e308, which few readers can take"
            let fault = JSONError(place: 2, message: message, isRefusal: true)
            #expect(copy("[\(text)]") == .failure(fault))
        }
        let long = "0." + String(repeating: "3", count: 5000)
        #expect(copy(long) == .success(long))
    }

    @Test func nesting_hasALimit() {
        let deep = String(repeating: "[", count: 32) + String(repeating: "]", count: 32)
        #expect(copy(deep) == .success(deep))
        #expect(
            copy("[\(deep)]")
                == .failure(
                    JSONError(place: 33, message: "nested deeper than 32 levels", isRefusal: true)
                )
        )
        #expect(copy(String(repeating: "{\"a\":", count: 100_000)).isFailure)
        #expect(copy(String(repeating: "[{}],", count: 3), depth: 2).isFailure)
    }

    @Test func parts_sayWhatIsExpectedAndWhatIsThere() {
        for (text, kind) in [
            ("[1]", "an array"), ("\"x\"", "a text"), ("-1", "a number"), ("null", "null"),
            ("false", "false"),
        ] {
            var cursor = JSONCursor(Array(text.utf8))
            let fault = JSONError(
                place: 1,
                message: "an object, and this is \(kind)",
                isRefusal: true
            )
            #expect(throws: fault) { try cursor.openObject("an object") }
        }
        var none = JSONCursor(Array(" nonsense".utf8))
        #expect(throws: JSONError(place: 2, message: "a text")) { try none.text("a text") }
        var cursor = JSONCursor(Array(#"{"\u0061\n":"\u00e9\"/"}"#.utf8))
        #expect(throws: Never.self) {
            try cursor.openObject("")
            let name = try cursor.nextName()
            #expect(name?.text == Array("a\n".utf8))
            #expect(name.map { Array($0.written) } == Array(#""\u0061\n""#.utf8))
            #expect(try cursor.text("") == Array("é\"/".utf8))
            #expect(try cursor.nextName() == nil)
            try cursor.end()
        }
    }
}

extension Result {
    fileprivate var isFailure: Bool { if case .failure = self { true } else { false } }
}
