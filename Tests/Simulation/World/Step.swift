// What can happen in a simulated world: one step of a history.

/// One thing that happens; what it draws comes from `draw`, so that steps can be left out of a history.
package struct Step: Equatable, CustomStringConvertible {
    package enum Kind: String, CaseIterable {
        // Time.
        case wait, gap, night
        case clockSync, clockNote, clockStep, clockRight
        // Sources.
        case sightings, beacons, fixes, events, put, lossNoted
        case soundStart, sound, soundHole, soundEnd
        case surveyStart, surveyStop
        // The program.
        case sync, health, maintain, requeue, drop, limits, shrink, declare
        // A person has uploaded records sent again.
        case resend
        case stop, kill, reboot
        // The disk.
        case powerCut, powerOff, full, failWrites, failSyncs, failReads, failOlderReads, readOnly,
            faultsEnd
        // `clip` takes the last pages.
        case damage, cut, clip, empty, snapshot, rollback, copy
        // The program takes its database for damaged, and it is not.
        case replace
        // Nearly all the room on the disk is taken by others.
        case squeeze
        // The server.
        case server
        // The server refuses single records; half of the requests are lost; it gives any answer; it is well.
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
