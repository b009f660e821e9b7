// A test's temporary files, and the files of the source tree.
package import Foundation

/// A temporary folder of a test, deleted with this object.
package final class TemporaryFolder: Sendable {
    /// Short, because a socket's path has at most 107 bytes.
    package let path = NSTemporaryDirectory() + "wp-" + UUID().uuidString.prefix(8)

    /// Creates the folder with these folders in it.
    package init(_ folders: String...) {
        for folder in [""] + folders {
            // If this fails, the first use reports it.
            try? FileManager.default.createDirectory(
                atPath: "\(path)/\(folder)",
                withIntermediateDirectories: true
            )
        }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Writes a file, in a folder that is made if it is missing, and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String, mode: Int = 0o600) throws -> String {
        let file = "\(path)/\(name)"
        try FileManager.default.createDirectory(
            at: URL(fileURLWithPath: file).deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
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

    /// Returns the path of a file such as `Tests/Fixtures/stores`.
    package static func path(_ file: String) -> String { root.appendingPathComponent(file).path }
}
