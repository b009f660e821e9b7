// Turns HCI events into sightings and counts what was lost.
import Host
import Records
import StatusBoard

/// Takes the HCI events of the beacon source; used by the source's thread only.
final class Reception {
    private let clock: any HostClock
    private let sink: any RecordSink
    private var parser = ReportParser()
    private var intake: SightingIntake
    private let tap: AdvertisementTap?
    var meter: SourceMeter
    /// Losses of the current link that are already counted.
    private var linkLosses = 0
    /// Losses not yet reported.
    private var missed: Loss?

    init(
        _ settings: BeaconSettings,
        _ sink: any RecordSink,
        _ meter: SourceMeter,
        clock: any HostClock
    ) {
        self.sink = sink
        self.meter = meter
        self.clock = clock
        intake = SightingIntake(settings, sink)
        tap = sink.tap
    }

    /// Reports that the controller cut short.
    var truncated: Int { parser.truncated }

    /// Handles an event; true when it held a report.
    @discardableResult
    func receive(_ event: ArraySlice<UInt8>) -> Bool {
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
        if let tap, tap.isOpen {
            // Other programs would take the zeros for an address.
            for report in reports where !report.isAnonymous { tap.pass(report.raw) }
        }
        for report in reports {
            intake.receive(report, at: stamp) { sighting in
                if sink.accept(sighting) { meter.admit(stamp) } else { meter.drop() }
            }
        }
        return !reports.isEmpty
    }

    private var unreadable: Failure {
        Failure(
            "\(meter.report.device): nothing usable for a minute: the controller's reports cannot be read; "
                + "power it off and on, or use another one"
        )
    }

    /// Starts a new link: its counter is zero, and it cannot complete fragments of the old one.
    func begin() {
        linkLosses = 0
        let begun = parser.giveUpAll()
        if begun > 0 { miss(begun, at: clock.stamp()) }
    }

    /// Reports pending state and losses to board and ledger, at most once per second.
    func update(_ link: (any HCILink)?, _ now: BootInstant) {
        guard let delay = meter.updateDelay(now), delay <= .zero else { return }
        settle(link)
        meter.update(now)
    }

    /// Reports all pending losses, at the end of a link or a run.
    func settle(_ link: (any HCILink)?) {
        if let losses = link?.losses, losses > linkLosses {
            miss(losses - linkLosses, at: clock.stamp())
            linkLosses = losses
        }
        if let missed { sink.record(missed) }
        missed = nil
    }

    private func miss(_ count: Int, at stamp: Stamp) {
        meter.drop(count)
        let from = missed?.from ?? stamp
        let records = Int64(count) + (missed?.records ?? 0)
        missed = Loss(.missed, .beacons, records: records, from: from, to: stamp)
    }
}
