// The part of an import that needs the network: exchanges a code and verifies the token.
import Configuration
import Glibc
package import Host
import HTTP
import Setup
package import Status
import StatusBoard
import Upload

/// Asks the server that a card named, once; the systemd unit that runs the import retries.
package struct CardEnrolment {
    package struct Outcome: Sendable, Equatable {
        /// A code was exchanged for a token, which the service needs.
        package var hasNewToken = false
        /// Why the server does not know the device; nil if it does, or if nothing was to be asked.
        package var problem: CardFailure?
        /// A retry may succeed without a person.
        package var isLater = false
    }

    /// Asks the server as the service's user, if root runs this; the process must have one thread.
    package var isIsolated = false
    private let paths: ImportPaths
    private let version: String
    private let clock: any HostClock
    private let journal: ImportJournal
    private let report: CardReport

    package init(
        _ paths: ImportPaths,
        version: String,
        clock: any HostClock = SystemClock(),
        files: StepFiles = StepFiles()
    ) {
        (self.paths, self.version, self.clock) = (paths, version, clock)
        let owner = ServiceOwner(stateDirectory: paths.state)
        journal = ImportJournal(paths: paths, files: files, owner: owner)
        report = CardReport(paths: paths, files: files, owner: owner)
    }

    /// Exchanges and verifies what was imported; reports problems on `card`, a folder, too.
    ///
    /// Throws a SystemError if the device's own disk fails, ConfigurationErrors for a bad file.
    package func run(on card: String?) throws -> Outcome {
        guard let mark = journal.unverified else { return Outcome() }
        let configuration = try inForce()
        var outcome = Outcome()
        do {
            try journal.recordVerified(try ask(configuration, mark, &outcome))
        } catch let failure as Failure {
            outcome.isLater = failure.code != .tokenRefused && failure.code != nil
            let name = configuration.upload.endpoint ?? ""
            outcome.problem = problem("\(name): \(failure)", failure.code)
        }
        let card = card.flatMap { access($0, F_OK) == 0 ? $0 : nil }
        let reported = outcome.problem.map { [$0] } ?? []
        // A stick may be imported now: the lock guards reading, changing and writing the report.
        _ = try journal.locked { try report.record(server: reported, on: card) }
        return outcome
    }

    /// Returns the configuration in force; one from a card cannot change the service's directories.
    private func inForce() throws -> Configuration {
        let path = paths.configuration
        var values = try Configuration.load(path: path, environment: [:]).values
        if Configuration.inForce(path) != path {
            (values.stateDirectory, values.runtimeDirectory) = (paths.state, paths.runtime)
        }
        return values
    }

    /// Returns the mark that was verified, or cannot be; throws if the server refuses the device.
    private func ask(
        _ configuration: Configuration,
        _ imported: ImportJournal.Mark,
        _ outcome: inout Outcome
    ) throws -> ImportJournal.Mark {
        var mark = imported
        let upload = configuration.upload
        // The gateway itself verifies a bucket.
        guard upload.destination == .ingest, let endpoint = upload.endpoint else { return mark }
        let transport = upload.transport(endpoint, userAgent: "waypost/\(version)")
        let asker = isIsolated ? journal.owner.ids : nil
        if let waiting = SmallText.read(paths.code) {
            let code = try BoundSecret(Array(waiting.utf8)).secret(
                for: endpoint,
                onlyBound: upload.isFromCard
            )
            let text = trimmed(String(decoding: code, as: UTF8.self))
            try journal.tryToStore()
            let token = try Onboarding.exchange(
                text,
                configuration,
                journal.owner,
                transport,
                as: asker
            )
            mark = try journal.store(token: token, for: upload.server, after: mark)
            AskedToken(configuration: configuration).forget()
            outcome.hasNewToken = true
        }
        let token = try upload.secret(["CREDENTIALS_DIRECTORY": paths.credentials])
        _ = try asUser(asker) {
            _ = try Enrolment.verify(transport, token: token, until: StopSignal())
            return ""
        }
        return mark
    }

    private func problem(_ what: String, _ code: ErrorCode?) -> CardFailure {
        // Without a set clock, certificates are not yet valid.
        let isDated = clock.wall() > .release
        let remedy =
            switch code {
            case .tokenRefused: "ask whoever runs the server for another one, or for its address"
            case nil: "give it a token or an enrolment code"
            case _ where isDated:
                "it is tried again every minute; check the network, and upload.endpoint"
            case _: "the device does not know the date yet: it is tried again when it does"
            }
        return CardFailure(file: "", what, remedy)
    }
}
