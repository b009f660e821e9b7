// The upgrade that a server asked for last, as it is stored on this device.
import Glibc
package import Host
import JSON
package import Records

/// The newest upgrade and what became of it: one small file beside the queue.
///
/// The old and the new program read it. Only the `remote` thread writes it.
package struct StoredUpgrade: Codable, Sendable, Equatable {
    private static let fileName = "upgrade.json"
    private static let largestFile = 64 << 10

    /// The server's id of the job.
    package let job: String
    /// The version of Debian that was asked for.
    package let version: String
    /// How the device was before.
    package let before: SettingsGate.Before
    /// The result of root's unit that was there before.
    package let oldResult: String?
    /// `trial` until the result is known.
    package private(set) var state = JobOutcome.State.trial
    package private(set) var message = ""

    init(job: String, version: String, before: SettingsGate.Before, oldResult: String?) {
        (self.job, self.version) = (job, version)
        (self.before, self.oldResult) = (before, oldResult)
    }

    /// The same upgrade with its result.
    func ended(_ state: JobOutcome.State, _ message: String) -> Self {
        var ended = self
        (ended.state, ended.message) = (state, message)
        return ended
    }

    /// Returns the result in a text of root's unit: the version, then the state and a reason; nil
    /// if it is about another upgrade.
    func result(in text: String) -> (state: JobOutcome.State, message: String)? {
        let lines = text.split(separator: "\n").map { $0.split(separator: " ", maxSplits: 1) }
        guard text != oldResult, lines.count >= 2, lines[0].first.map({ $0 == version }) == true,
            let state = lines[1].first.flatMap({ JobOutcome.State(rawValue: String($0)) }),
            [.kept, .rolledBack, .refused, .failed].contains(state)
        else { return nil }
        return (state, lines[1].dropFirst().first?.plainWords(atMost: 500) ?? "")
    }

    /// Reads what a state directory has; nil if it lacks the file.
    package static func read(in directory: String) throws -> Self? {
        let path = "\(directory)/\(fileName)"
        do {
            let file = try SmallFile.read(path, limit: largestFile, followsLink: false)
            guard file.isRegular else { throw Failure("\(path) is not a file") }
            return try JSONInput.decode(Self.self, from: file.bytes, snakeCase: true)
        } catch let error as SystemError where error.code == ENOENT {
            return nil
        }
    }

    package func write(in directory: String) throws(SystemError) {
        try SmallFile.replace("\(directory)/\(Self.fileName)", encodedJSON(self), mode: 0o640)
    }
}
