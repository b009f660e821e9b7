// Helpers of the configuration tests.
import Configuration
import Foundation

import Daemon
import Setup

/// Parses `text` as the file `w.toml`.
func load(_ text: String, _ environment: [String: String] = [:]) throws -> LoadedConfiguration {
    try Configuration.check(Array(text.utf8), file: "w.toml", environment: environment)
}

/// Returns the problems of `text`, one per line; empty if it is valid.
func problems(_ text: String, _ environment: [String: String] = [:]) -> [String] {
    do {
        _ = try Configuration.check(Array(text.utf8), file: "w.toml", environment: environment)
        return []
    } catch {
        return error.problems.map(\.description)
    }
}
