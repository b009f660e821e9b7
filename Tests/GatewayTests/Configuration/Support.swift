// What the tests of the configuration share.
import Configuration
import Foundation

@testable import Gateway

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
