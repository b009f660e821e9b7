// Owns a document parsed by toml++ (CTOML); values are copied into Swift types.
import CTOML

/// A value as written in the file or the environment, before its key interprets it.
package indirect enum Literal: Equatable {
    case string(String)
    case integer(Int64)
    case number(Double)
    case boolean(Bool)
    case strings([String])
    case table
    /// Any other type, named in words.
    case other(String)
    /// The text of an environment variable, which has no TOML type.
    case unquoted(String)
    /// One member of a table with free keys.
    case member(String, Literal)
}

/// A key of the file with its position.
struct TOMLEntry: Equatable {
    /// The dotted path; parts that are not bare keys are quoted.
    var path: String
    /// The last part, unquoted.
    var key: String
    var value: Literal
    var line: Int
}

/// A syntax error in the file, with toml++'s message.
struct TOMLError: Error, Equatable {
    var line: Int
    var column: Int
    var description: String
}

struct TOMLDocument: ~Copyable {
    private let handle: OpaquePointer

    init(_ bytes: [UInt8]) throws(TOMLError) {
        let parsed = bytes.withUnsafeBytes { buffer in
            waypost_toml_parse(
                buffer.baseAddress?.assumingMemoryBound(to: CChar.self),
                buffer.count
            )
        }
        guard let parsed else {
            throw TOMLError(line: 1, column: 1, description: "no memory to parse it")
        }
        if let error = Self.check(parsed) {
            waypost_toml_free(parsed)
            throw error
        }
        handle = parsed
    }

    deinit {
        waypost_toml_free(handle)
    }

    /// Returns every key in file order, tables before their members.
    func entries() -> [TOMLEntry] {
        (0..<waypost_toml_count(handle)).compactMap { index in
            var entry = waypost_toml_entry()
            guard waypost_toml_get(handle, index, &entry) else { return nil }
            return TOMLEntry(
                path: String(entry.path),
                key: String(entry.key),
                value: value(entry, at: index),
                line: Int(entry.line)
            )
        }
    }

    private static func check(_ handle: OpaquePointer) -> TOMLError? {
        var error = waypost_toml_error()
        guard waypost_toml_failed(handle, &error) else { return nil }
        return TOMLError(
            line: Int(error.line),
            column: Int(error.column),
            description: String(error.description)
        )
    }

    private func value(_ entry: waypost_toml_entry, at index: Int) -> Literal {
        switch entry.kind {
        case WAYPOST_TOML_STRING: .string(String(entry.string))
        case WAYPOST_TOML_INTEGER: .integer(entry.integer)
        case WAYPOST_TOML_FLOAT: .number(entry.number)
        case WAYPOST_TOML_BOOLEAN: .boolean(entry.boolean)
        case WAYPOST_TOML_STRINGS:
            .strings(
                (0..<entry.strings).map { String(waypost_toml_element(handle, index, $0)) }
            )
        case WAYPOST_TOML_TABLE: .table
        default: .other(String(entry.string))
        }
    }
}

extension String {
    fileprivate init(_ text: waypost_toml_text) {
        let start = UnsafeRawPointer(text.bytes)
        self.init(decoding: UnsafeRawBufferPointer(start: start, count: text.count), as: UTF8.self)
    }
}
