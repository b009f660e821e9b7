import Testing

import JSON

@Suite struct JSONInputTests {
    /// Each ends a program of Swift 6.0 that gives it to Foundation's JSONDecoder, or is no JSON anyhow.
    @Test(arguments: [
        "{\"\u{0}\": 1}", "{\"a\u{1F}b\": 1}", #"{"\q": 1}"#, #"{"\u12G4": 1}"#, #"{"\u12"#,
        #"{"\uDC00": 1}"#, #"{"\uD800": 1}"#, #"{"\uD800\u0041": 1}"#, "{\"a", "{\"a\\",
    ])
    func brokenName_isMalformed(text: String) {
        #expect(throws: JSONError.self) {
            try JSONInput.decode([String: Int].self, from: Array(text.utf8))
        }
    }

    @Test func bytesThatAreNoUTF8_areMalformed() {
        #expect(throws: JSONError.self) {
            try JSONInput.decode(
                [String: Int].self,
                from: [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D]
            )
        }
    }

    @Test(arguments: [
        (#"{"a\"\\\/\b\f\n\r\t": 1}"#, "a\"\\/\u{8}\u{C}\n\r\t"),
        (#"{"\u00e4\uD83D\uDE00": 1}"#, "ä😀"),
        ("{ \"ä😀\" :\n1 }", "ä😀"), (#"{"": 1}"#, ""),
    ])
    func soundName_isRead(text: String, name: String) throws {
        #expect(try JSONInput.decode([String: Int].self, from: Array(text.utf8)) == [name: 1])
    }

    @Test func namesInSnakeCase_areRead() throws {
        struct Value: Decodable { var oneName: Int }
        let text = Array(#"{"one_name": 2}"#.utf8)
        #expect(try JSONInput.decode(Value.self, from: text, snakeCase: true).oneName == 2)
    }
}
