import Foundation
import Host
import Records
import Support
import Testing

import Daemon
import Setup

/// The manual pages match the program.
@Suite struct ManualTests {
    private static let root = Tree.root

    private func page(_ name: String) throws -> String {
        let url = Self.root.appendingPathComponent("deploy/man/\(name).scd")
        return try String(contentsOf: url, encoding: .utf8)
    }

    /// Removes scdoc's markup.
    private func words(_ name: String) throws -> Set<String> {
        let plain = try page(name).replacingOccurrences(of: "\\", with: "")
        let isWord = { (character: Character) in
            character.isLetter || character.isNumber || character == "_" || character == "-"
        }
        return Set(plain.split { !isWord($0) }.map(String.init))
    }

    @Test func configurationPage_hasTheListOfTheKeys() throws {
        let parts = try page("waypost.toml.5").components(
            separatedBy: "; keys: waypost config manual\n"
        )
        #expect(parts.count == 3)
        #expect(
            parts.dropFirst().first == Configuration.manual,
            "`waypost config manual` prints what stands between the two lines"
        )
    }

    @Test func protocolPage_hasEachCode_kindAndField() throws {
        let words = try words("waypost-protocol.7")
        for code in ErrorCode.allCases { #expect(words.contains(code.rawValue)) }
        for kind in EventKind.allCases { #expect(words.contains(kind.rawValue)) }
        for kind in BeaconKind.allCases { #expect(words.contains("\(kind.name)")) }
        for kind in StreamList.builtIn {
            #expect(words.contains(kind.wire))
            guard case .plain(let columns) = kind.shape, ![.surveys, .health].contains(kind.stream)
            else { continue }
            for key in columns.compactMap(\.key) { #expect(words.contains(key), "\(kind.wire)") }
        }
    }
}
