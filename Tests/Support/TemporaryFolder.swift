// Files of a test's own, and those of the source tree.
package import Foundation

/// A folder of a test's own, gone with it.
package final class TemporaryFolder: Sendable {
    /// Short: the name of a socket in it has 107 bytes.
    package let path = NSTemporaryDirectory() + "wp-" + UUID().uuidString.prefix(8)

    /// With these folders in it.
    package init(_ folders: String...) {
        for folder in [""] + folders {
            // What cannot be made is told by the first use of it.
            try? FileManager.default.createDirectory(
                atPath: "\(path)/\(folder)",
                withIntermediateDirectories: true
            )
        }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Writes a file and gives its path.
    @discardableResult
    package func write(_ text: String, to name: String, mode: Int = 0o600) throws -> String {
        let file = "\(path)/\(name)"
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        return file
    }

    package func read(_ name: String) throws -> String {
        try String(contentsOfFile: "\(path)/\(name)", encoding: .utf8)
    }

    /// Names of the files in it, sorted.
    package var files: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
    }
}

/// The source tree that the tests were built from.
package enum Tree {
    package static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The path of a file, as `Tests/Fixtures/stores`.
    package static func path(_ file: String) -> String { root.appendingPathComponent(file).path }
}
