// What the tests of the configuration share.
import Configuration
import Foundation

@testable import Gateway

/// A new directory, removed when the test is over.
final class Scratch: Sendable {
    let path: String

    init() throws {
        let name = "waypost-configuration-\(UUID().uuidString)"
        path = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Writes a file and gives its path.
    @discardableResult
    func write(_ text: String, to name: String, mode: Int = 0o600) throws -> String {
        let file = "\(path)/\(name)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        return file
    }

    func read(_ name: String) throws -> String {
        String(
            decoding: try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")),
            as: UTF8.self
        )
    }

    var files: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
    }
}

/// The configuration in `text`, as the file `w.toml`.
func load(_ text: String, _ environment: [String: String] = [:]) throws -> LoadedConfiguration {
    try Configuration.check(Array(text.utf8), file: "w.toml", environment: environment)
}

/// The problems of `text`, a line each; none where it is right.
func problems(_ text: String, _ environment: [String: String] = [:]) -> [String] {
    do {
        _ = try Configuration.check(Array(text.utf8), file: "w.toml", environment: environment)
        return []
    } catch {
        return error.problems.map(\.description)
    }
}
