// The settings of the site, for names and metadata of exported audio files.
package import Configuration
import Host

/// `[site]`: the site's name and own fields of exported audio files.
package struct SiteSettings: Configurable {
    /// In file names in place of the device's id.
    package var name: String?
    /// Own GUANO fields by name.
    package var fields: [String: String] = [:]

    package init() {}

    package static var keys: [Key<Self>] {
        Key("name", optional: \.name, .siteName, example: "lake meadow")
            .says("The site's name, for names and metadata of exported audio files.")
        Key("fields", table: \.fields, .guanoFields)
            .says("Own fields of GUANO in exported audio files, as agencies ask for.")
    }
}

@Sendable private func isLine(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
        && !text.unicodeScalars.contains { $0.value < 32 || (127...159).contains($0.value) }
}

extension ValueFormat where Value == String {
    fileprivate static let siteName = ValueFormat.text(
        "a line of at most 64 bytes",
        no: "site name",
        isValid: isLine
    )
}

extension ValueFormat where Value == [String: String] {
    /// Reads one field per call; names as Vorbis comments and GUANO can have them.
    fileprivate static let guanoFields = ValueFormat(
        allowed: "a line under the name of a field, as \"NABat|Grid Cell\" = \"1234\"",
        read: { literal in
            guard case .member(let name, .string(let text)) = literal else {
                return .mismatch("found \(literal.foundKind)")
            }
            let isName = name.utf8.allSatisfy { $0 < 126 && !":=".utf8.contains($0) }
            let own = ["GUANO", "Waypost", "Timestamp", "Samplerate", "Length"]
            guard isName, isLine(name), !own.contains(where: { name.hasPrefix($0) }) else {
                return .mismatch("its name is reserved, or not one that GUANO allows")
            }
            return isLine(text) ? .success([name: text]) : .mismatch("is not such a line")
        },
        written: { _ in "{}" }
    )
}
