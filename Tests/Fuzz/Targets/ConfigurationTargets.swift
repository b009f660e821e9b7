// Fuzz targets for input from people: the file, the environment, tokens.
import Beacons
import Configuration
@testable import Daemon
import FuzzSupport
@testable import Setup

enum ConfigurationTargets {
    static let all = [
        FuzzTarget(name: "configuration", run: file),
        FuzzTarget(name: "environment", run: environment),
    ]

    private static func check(
        _ bytes: [UInt8],
        _ environment: [String: String]
    ) -> LoadedConfiguration? {
        do throws(ConfigurationErrors) {
            return try Configuration.check(bytes, file: "w.toml", environment: environment)
        } catch {
            precondition(!error.problems.isEmpty)
            // A message is fit for a terminal, and does not quote the whole file.
            precondition(error.problems.allSatisfy { "\($0)".utf8.count < 20_000 })
            return nil
        }
    }

    private static func file(_ input: [UInt8]) {
        guard input.count <= KeyTable<Configuration>.largestFile, let loaded = check(input, [:])
        else {
            return
        }
        // An accepted configuration parses to the same values when it is shown, except for secret
        // keys.
        let again = check(Array(loaded.shown.utf8), [:])
        var shown = loaded.values
        shown.beacons.bindkeys = [:]
        precondition(again?.values == shown)
    }

    /// The first byte selects the key.
    private static func environment(_ input: [UInt8]) {
        let keys = Configuration.table.keys
        guard let choice = input.first else { return }
        let key = keys[Int(choice) % keys.count]
        let text = String(decoding: input.dropFirst(), as: UTF8.self)
        _ = check([], [key.variable: text])
    }
}
