// The settings from the server as they are stored on this device.
import Glibc
package import Host
import JSON
import Records

/// The version in force, the one to go back to, and the trial between them.
///
/// One small file beside the queue, replaced as a whole. The `remote` thread writes it, and before
/// it runs the start of the program, which counts the starts of a trial; `waypost config remote
/// --clear` does so for a person.
package struct StoredSettings: Codable, Sendable, Equatable {
    package static let fileName = "remote-settings.json"
    private static let largestFile = 512 << 10

    package struct Version: Codable, Sendable, Equatable {
        package var number: Int64
        package var text: String
        /// The server's id of the job that brought it.
        var job = ""

        package init(number: Int64, text: String) { (self.number, self.text) = (number, text) }
    }

    package enum State: String, Codable, Sendable {
        case none, trial, kept
    }

    /// The newest outcome of the job that brought the newest version.
    package struct Outcome: Codable, Sendable, Equatable {
        package var job: String
        package var version: Int64
        package var state: String
        package var message: String
    }

    /// The version above the device's own file; nil: that file alone.
    package private(set) var current: Version?
    package private(set) var state = State.none
    /// During a trial: the version to go back to.
    private var good: Version?
    /// When the trial began, in milliseconds since 1970.
    private var trialMs: Int64?
    /// The highest version that was ever in force or on trial.
    package private(set) var highest: Int64 = 0
    /// The version that was rolled back last.
    package private(set) var refused: Int64?
    package private(set) var outcome: Outcome?
    /// The outcome of another job before it, which may not be answered either.
    private(set) var earlier: Outcome?
    private(set) var gate: SettingsGate?

    package init() {}

    /// When the trial began; nil if there is none.
    package var trialSince: WallTime? { trialMs.map { WallTime(milliseconds: $0) } }

    // MARK: The file

    /// Reads what a state directory has; nothing if it lacks the file.
    ///
    /// Throws if there is one that cannot be read: its versions stay refused.
    package static func read(in directory: String) throws -> Self {
        let path = "\(directory)/\(fileName)"
        let file: SmallFile
        do {
            file = try SmallFile.read(path, limit: largestFile, followsLink: false)
        } catch {
            if error.code == ENOENT { return Self() }
            throw error
        }
        guard file.isRegular, file.bytes.count <= largestFile,
            let stored = try? JSONInput.decode(Self.self, from: file.bytes, snakeCase: true)
        else {
            throw Failure(
                "\(path) is damaged; `sudo waypost config remote --clear` replaces it"
            )
        }
        return stored
    }

    package func write(in directory: String) throws(SystemError) {
        let path = "\(directory)/\(Self.fileName)"
        try SmallFile.replace(path, encodedJSON(self), mode: 0o640, keepsOwner: true)
    }

    /// Counts a start of the program during a trial; returns whether that ended the trial.
    ///
    /// If the count cannot be stored, the trial goes on without it.
    package static func countStart(in directory: String) -> Bool {
        guard var stored = try? read(in: directory), stored.state == .trial else { return false }
        stored.start()
        guard (try? stored.write(in: directory)) != nil else { return false }
        return stored.state != .trial
    }

    // MARK: Changes

    /// Records a start of the program, which may end a trial.
    package mutating func start() {
        guard state == .trial, var gate else { return }
        let verdict = gate.start()
        self.gate = gate
        end(verdict)
    }

    /// Puts a version on trial.
    mutating func begin(_ version: Version, _ gate: SettingsGate, at time: WallTime) {
        invariant(version.number > highest, "a version is on trial once")
        (good, earlier) = (current, nil)
        (current, state, self.gate) = (version, .trial, gate)
        trialMs = time.milliseconds
        highest = max(highest, version.number)
        record(.trial, of: version, "")
    }

    private mutating func record(_ state: JobOutcome.State, of version: Version, _ why: String) {
        outcome = Outcome(
            job: version.job,
            version: version.number,
            state: state.rawValue,
            message: why
        )
    }

    /// Records what happened during a trial, and ends it if that decides it.
    mutating func observe(_ observation: SettingsGate.Observation) {
        guard state == .trial, var gate else { return }
        let verdict = gate.observe(observation)
        self.gate = gate
        end(verdict)
    }

    private mutating func end(_ verdict: SettingsGate.Verdict) {
        switch verdict {
        case .undecided: break
        case .keep:
            (state, good, gate, trialMs) = (.kept, nil, nil, nil)
            if let current { record(.kept, of: current, "") }
        case .rollBack(let why): rollBack(why)
        }
    }

    /// Ends a trial: the version before is in force again.
    mutating func rollBack(_ why: String) {
        guard state == .trial, let version = current else { return }
        refused = version.number
        record(.rolledBack, of: version, why)
        (current, state) = (good, good == nil ? .none : .kept)
        (good, gate, trialMs) = (nil, nil, nil)
    }

    /// Leaves the device's own file alone in force.
    ///
    /// `isSigned`: older versions stay refused, for they could be replayed.
    package mutating func clear(_ why: String, isSigned: Bool) {
        if let current {
            if outcome?.job != current.job { earlier = outcome }
            if state == .trial { refused = current.number }
            record(.rolledBack, of: current, why)
        }
        (current, state, good, gate, trialMs) = (nil, .none, nil, nil, nil)
        if !isSigned { highest = 0 }
    }
}
