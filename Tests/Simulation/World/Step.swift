// The steps of a history in a simulated world.

/// One step; its random choices come from `draw`, so that steps can be removed from a history.
package struct Step: Equatable, CustomStringConvertible {
    package enum Kind: String, CaseIterable {
        // Time.
        case wait, gap, night
        case clockSync, clockNote, clockStep, clockRight
        // Sources.
        case sightings, beacons, fixes, events, put, lossNoted
        case soundStart, sound, soundHole, soundEnd
        // A person asks for the sound of some time.
        case mark
        case surveyStart, surveyStop
        // The program.
        case sync, health, maintain, requeue, drop, limits, shrink, declare
        // A person resends uploaded records.
        case resend
        // The server asks for something, or sends settings.
        case job, settings
        case stop, kill, reboot
        // The disk.
        case powerCut, powerOff, full, failWrites, failSyncs, failReads, failOlderReads, readOnly,
            faultsEnd
        // `clip` removes the last pages.
        case damage, cut, clip, empty, snapshot, rollback, copy
        // The program considers its intact database damaged.
        case replace
        // Other files take nearly all the space on the disk; or so much that a small database could
        // not make up for it, with the limits of a real device.
        case squeeze, crowd
        // The server.
        case server
        // The server refuses single records; loses half of the requests; fails; refuses large
        // batches; gives any answer; works.
        case poison, stumble, outage, oversized, table, good
    }

    package var kind: Kind
    package var device: Int
    package var amount: Int
    package var draw: UInt64

    package init(_ kind: Kind, device: Int = 0, amount: Int = 0, draw: UInt64 = 0) {
        self.kind = kind
        self.device = device
        self.amount = amount
        self.draw = draw
    }

    package var description: String {
        "\(kind.rawValue)(\(amount)) device \(device) draw \(draw)"
    }
}
