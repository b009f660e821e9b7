// What an import needs the network for: a token for a code, and whether the server knows this device.
import Configuration
import Glibc
package import Host
import HTTP
import StatusBoard
import Upload

/// Asks the server that a card named, once; the unit that runs it tries again.
package struct CardEnrolment {
    package struct Outcome: Sendable, Equatable {
        /// A code was good for one: the service needs it.
        package var hasNewToken = false
        /// Why the device is not known there; nil where it is, or nothing was to be asked.
        package var problem: CardProblem?
        /// It may be asked again, without a person.
        package var isLater = false
    }

    private let places: ImportPlaces
    private let version: String
    private let clock: any HostClock
    private let journal: ImportJournal
    private let report: CardReport

    package init(
        _ places: ImportPlaces,
        version: String,
        clock: any HostClock = SystemClock()
    ) {
        self.init(places, version: version, clock: clock, files: StepFiles())
    }

    init(_ places: ImportPlaces, version: String, clock: any HostClock, files: StepFiles) {
        (self.places, self.version, self.clock) = (places, version, clock)
        let owner = ServiceOwner(stateDirectory: places.state)
        journal = ImportJournal(places: places, files: files, owner: owner)
        report = CardReport(places: places, files: files, owner: owner)
    }

    /// `card`: a folder, where what is wrong is told on a card, too.
    ///
    /// Throws a SystemError where the device's own disk fails, ConfigurationErrors where its file is wrong.
    package func run(on card: String?) throws -> Outcome {
        guard let mark = journal.unverified else { return Outcome() }
        let configuration = try inForce()
        var outcome = Outcome()
        do {
            try journal.noteVerified(try ask(configuration, mark, &outcome))
        } catch let failure as Failure {
            outcome.isLater = failure.code != .tokenRefused && failure.code != nil
            let name = configuration.upload.endpoint ?? ""
            outcome.problem = problem("\(name): \(failure)", failure.code)
        }
        let card = card.flatMap { access($0, F_OK) == 0 ? $0 : nil }
        let told = outcome.problem.map { [$0] } ?? []
        // A stick may be looked at just now: what one of the two reads, changes and writes, the other must not have changed.
        _ = try journal.locked { try report.tell(server: told, on: card) }
        return outcome
    }

    /// The configuration in force; what came from a card has no say in which directories are the service's.
    private func inForce() throws -> Configuration {
        let path = places.configuration
        var values = try Configuration.load(path: path, environment: [:]).values
        if Configuration.inForce(path) != path {
            (values.stateDirectory, values.runtimeDirectory) = (places.state, places.runtime)
        }
        return values
    }

    /// Returns where the server knows the device, or nobody can be asked: what was asked about.
    private func ask(
        _ configuration: Configuration,
        _ imported: ImportJournal.Mark,
        _ outcome: inout Outcome
    ) throws -> ImportJournal.Mark {
        var mark = imported
        let upload = configuration.upload
        // A bucket is asked by the gateway itself.
        guard upload.destination == .ingest, let endpoint = upload.endpoint else { return mark }
        let transport = upload.transport(endpoint, userAgent: "waypost/\(version)")
        if let waiting = SmallText.read(places.code) {
            let code = try BoundSecret(Array(waiting.utf8)).secret(
                for: endpoint,
                onlyBound: upload.isFromCard
            )
            let text = trimmed(String(decoding: code, as: UTF8.self))
            try journal.tryToStore()
            let token = try Onboarding.exchange(text, configuration, journal.owner, transport)
            mark = try journal.store(token: token, for: upload.server, after: mark)
            AskedToken(configuration: configuration).forget()
            outcome.hasNewToken = true
        }
        let token = try Token.read(
            file: upload.tokenFile,
            environment: ["CREDENTIALS_DIRECTORY": places.credentials],
            for: endpoint,
            onlyBound: upload.isFromCard
        )
        _ = try Enrolment.verify(transport, token: token, until: StopSignal())
        return mark
    }

    private func problem(_ what: String, _ code: ErrorCode?) -> CardProblem {
        // Certificates are good from a date on: without a clock they are not yet.
        let isDated = clock.wall() > .release
        let remedy =
            switch code {
            case .tokenRefused: "ask whoever runs the server for another one, or for its address"
            case nil: "give it a token or an enrolment code"
            case _ where isDated:
                "it is tried again every minute; check the network, and upload.endpoint"
            case _: "the device does not know the date yet: it is tried again when it does"
            }
        return CardProblem(file: "", what, remedy)
    }
}
