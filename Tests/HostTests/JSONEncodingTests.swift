// JSON as written and read here, compared with Foundation's, which these formats were first
// written with.
import Foundation
import Testing

import JSON

@Suite struct JSONEncodingTests {
    private enum Kind: String, Codable { case warm, cold }

    private struct Part: Codable, Equatable {
        var lastOk: String?
        var myURLText = "a/b \u{e9}\u{1F600}\"\\\u{1}"
        var pm25Value = 12.5
        var whole = 2.0
        var small = 1e-9
        var big = 1e22
        var ratio: Float = 0.1
        var kind = Kind.cold
    }

    private struct Whole: Codable, Equatable {
        var isOn = true
        var count = Int64.min
        var maximum = UInt64.max
        var bytes: [UInt8] = [0, 255]
        var parts = [Part(lastOk: "now"), Part()]
        var byName = ["aName": Part(), "other_name": Part(), "": Part()]
        var levels = ["aB": [1: "x"]]
        var none: [Part] = []
        var maybe: [Int?] = [1, nil, 3]
        var nothing: Part?
    }

    private func foundation(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    private func ours(_ value: some Encodable) -> String {
        String(decoding: encodedJSON(value), as: UTF8.self)
    }

    @Test func everyKindOfValue_isWrittenAsFoundationDoes() throws {
        #expect(try ours(Whole()) == foundation(Whole()))
        #expect(ours(["one", "two"]) == #"["one","two"]"#)
        #expect(ours(Kind.warm) == #""warm""#)
    }

    @Test func whatWasWritten_isReadAgain() throws {
        let read = try JSONInput.decode(Whole.self, from: encodedJSON(Whole()), snakeCase: true)
        #expect(read == Whole())
        #expect(
            try JSONInput.decode([String: Int].self, from: Array(#"{"aB":1}"#.utf8)) == ["aB": 1]
        )
    }

    @Test(arguments: [
        "a", "lastOk", "aB", "sentURLs", "myURL", "pm25Value", "rate1H", "A", "aBC",
        "already_snake", "x1", "aURLBook",
    ])
    func names_areInSnakeCaseAsFoundationHasThem(name: String) throws {
        struct Name: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }

            init(stringValue: String) { self.stringValue = stringValue }

            init?(intValue: Int) { nil }
        }
        struct Named: Encodable {
            var name: String

            func encode(to encoder: any Encoder) throws {
                var members = encoder.container(keyedBy: Name.self)
                try members.encode(1, forKey: Name(stringValue: name))
            }
        }
        #expect(try ours(Named(name: name)) == foundation(Named(name: name)))
    }

    /// One figure that went wrong does not take the others along.
    @Test func numberThatJSONDoesNotHave_isNull() {
        struct Figures: Encodable {
            var rate = Double.nan
            var maximum = Float.infinity
            var count = 3
        }
        #expect(ours(Figures()) == #"{"count":3,"maximum":null,"rate":null}"#)
    }

    @Test(arguments: ["1.5", "1e3", "300", "-1", #""1""#, "true", "null", "[1]", "{}"])
    func otherKindOfValue_isRefusedAsFoundationDoes(text: String) throws {
        let bytes = Array("[\(text)]".utf8)
        let theirs = try? JSONDecoder().decode([UInt8].self, from: Data(bytes))
        #expect((try? JSONInput.decode([UInt8].self, from: bytes)) == theirs)
        let texts = try? JSONDecoder().decode([String].self, from: Data(bytes))
        #expect((try? JSONInput.decode([String].self, from: bytes)) == texts)
        let flags = try? JSONDecoder().decode([Bool].self, from: Data(bytes))
        #expect((try? JSONInput.decode([Bool].self, from: bytes)) == flags)
    }

    @Test func memberThatIsMissing_isAskedForByName() {
        #expect(throws: DecodingError.self) {
            try JSONInput.decode(Part.self, from: Array(#"{"last_ok": "x"}"#.utf8), snakeCase: true)
        }
    }
}
