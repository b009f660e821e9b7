// From events to records, with the books kept on what was lost.
import Host
import Records
import StatusBoard

/// The receiving half of the source; lives on its thread.
struct Reception {
    private let clock: any HostClock
    private let accept: @Sendable (Sighting) -> Bool
    private let lose: @Sendable (Loss) -> Void
    private var parser = ReportParser()
    private let intake: Intake
    var meter: SourceMeter
    /// What the present link has lost so far.
    private var linkLosses = 0
    /// What no one has been told of yet.
    private var missed: Loss?

    init(
        _ settings: BeaconSettings,
        _ hooks: BeaconHooks,
        _ meter: SourceMeter,
        clock: any HostClock,
        accept: @escaping @Sendable (Sighting) -> Bool,
        lose: @escaping @Sendable (Loss) -> Void
    ) {
        intake = Intake(settings, hooks)
        self.meter = meter
        self.clock = clock
        self.accept = accept
        self.lose = lose
    }

    /// Reports that the controller cut short.
    var truncated: Int { parser.truncated }

    /// True when the event held a report.
    @discardableResult
    mutating func take(_ event: ArraySlice<UInt8>) -> Bool {
        let stamp = clock.stamp()
        let malformed = parser.malformed
        let reports = parser.parse(event, at: stamp.boot)
        if parser.malformed > malformed { miss(parser.malformed - malformed, at: stamp) }
        if !reports.isEmpty {
            meter.usable()
        } else if parser.malformed > malformed {
            let failure = unreadable
            meter.unusable(failure, at: stamp.boot)
        }
        for report in reports {
            Self.hand(report, &intake.owner, to: accept, &meter, at: stamp)
        }
        return !reports.isEmpty
    }

    private var unreadable: Failure {
        Failure(
            "\(meter.report.device): nothing usable for a minute: the controller's reports cannot be read; "
                + "take its power away for a moment, or use another one"
        )
    }

    /// A class around a value that cannot be copied, so that whoever holds it can be.
    private final class Intake {
        var owner: SightingIntake

        init(_ settings: BeaconSettings, _ hooks: BeaconHooks) {
            owner = SightingIntake(settings, hooks)
        }
    }

    /// Apart from `self`, of which two parts change at once.
    private static func hand(
        _ report: AdvertisingReport,
        _ intake: inout SightingIntake,
        to accept: (Sighting) -> Bool,
        _ meter: inout SourceMeter,
        at stamp: Stamp
    ) {
        intake.take(report, at: stamp) { sighting in
            if accept(sighting) { meter.admit(stamp) } else { meter.drop() }
        }
    }

    /// A new link counts from zero, and ends no report that another one has begun.
    mutating func begin() {
        linkLosses = 0
        let begun = parser.giveUpAll()
        if begun > 0 { miss(begun, at: clock.stamp()) }
    }

    /// Tells board and ledger what is owed, at most once a second.
    mutating func update(_ link: (any HCILink)?, _ now: BootInstant) {
        guard let delay = meter.updateDelay(now), delay <= .zero else { return }
        settle(link)
        meter.update(now)
    }

    /// Tells all that is owed: at the end of a link or a run.
    mutating func settle(_ link: (any HCILink)?) {
        if let losses = link?.losses, losses > linkLosses {
            miss(losses - linkLosses, at: clock.stamp())
            linkLosses = losses
        }
        if let missed { lose(missed) }
        missed = nil
    }

    private mutating func miss(_ count: Int, at stamp: Stamp) {
        meter.drop(count)
        let from = missed?.from ?? stamp
        let records = Int64(count) + (missed?.records ?? 0)
        missed = Loss(.missed, .beacons, records: records, from: from, to: stamp)
    }
}
