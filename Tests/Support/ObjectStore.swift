// A real object store (moto) in a separate process, and its contents as an analyst reads them.
package import Foundation
internal import Glibc

/// Runs `Tests/Peers/store.py`, which checks each signature and applies scripted faults to objects.
package final class ObjectStore {
    package static let root = Tree.root

    package struct Access: Decodable {
        package var endpoint: String
        package var bucket: String
        package var id: String
        package var secret: String

        package var url: String { "\(endpoint)/\(bucket)" }
        package var keys: String { "\(id):\(secret)" }
    }

    package struct Failed: Error {
        package var what: String
    }

    /// The result of one query over the whole bucket.
    package struct Contents: Decodable {
        package struct Row: Decodable, Equatable {
            package var stream: String
            package var date: String
            package var device: String
            package var records: Int
            package var ids: Int

            package init(from decoder: any Decoder) throws {
                var cells = try decoder.unkeyedContainer()
                stream = try cells.decode(String.self)
                date = try cells.decode(String.self)
                device = try cells.decode(String.self)
                records = try cells.decode(Int.self)
                ids = try cells.decode(Int.self)
            }
        }

        package var rows: [Row]
        /// Media types by key.
        package var objects: [String: String]
        /// SHA-256 in hex by key.
        package var digests: [String: String]
        /// The first four bytes of each file that an audio record names.
        package var sound: [String: String]
    }

    package let access: Access
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    package init(faults: [String] = []) throws {
        process.executableURL = URL(fileURLWithPath: Tree.python)
        process.arguments =
            [Self.root.appendingPathComponent("Tests/Peers/store.py").path] + faults
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let line = Self.line(from: output)
        guard let access = try? JSONDecoder().decode(Access.self, from: Data(line.utf8)) else {
            process.terminate()
            throw Failed(what: "store.py said: \(line)")
        }
        self.access = access
    }

    deinit {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Waits for the next object that was put; returns `FAULT KEY`.
    package func nextPut() -> String {
        let line = Self.line(from: output)
        return line.replacingOccurrences(of: "PUT ", with: "")
            .replacingOccurrences(of: "/\(access.bucket)/", with: "")
    }

    private static func line(from pipe: Pipe) -> String {
        var bytes: [UInt8] = []
        while let byte = try? pipe.fileHandleForReading.read(upToCount: 1)?.first, byte != 10 {
            bytes.append(byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads all objects back and queries them with DuckDB.
    package func contents() throws -> Contents {
        let folder = NSTemporaryDirectory() + "waypost-lake-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let reader = Process()
        reader.executableURL = URL(fileURLWithPath: Tree.python)
        reader.arguments = [
            Self.root.appendingPathComponent("Tests/Peers/lake.py").path, access.endpoint,
            access.bucket, access.id, access.secret, folder,
        ]
        let answer = Pipe()
        reader.standardOutput = answer
        try reader.run()
        let text = answer.fileHandleForReading.readDataToEndOfFile()
        reader.waitUntilExit()
        guard reader.terminationStatus == 0 else { throw Failed(what: "lake.py failed") }
        return try JSONDecoder().decode(Contents.self, from: text)
    }
}
