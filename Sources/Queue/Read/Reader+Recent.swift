// Restores a source's state from this boot's records when it starts.
package import Host
package import Records
import SQLite
import Synchronization

extension Reader {
    /// Returns sightings of a boot with readings since a time, oldest first.
    ///
    /// Looks at the newest `count` sightings only.
    func sightingsWithReadings(
        ofBoot boot: String,
        since: BootInstant,
        among count: Int64
    ) throws -> [Sighting] {
        let rows = try query(
            """
            SELECT beacon, rssi, boottime, wall, payload FROM sightings
            WHERE id>(SELECT max(id) FROM sightings)-? AND payload IS NOT NULL AND boottime>=?
            AND boot=(SELECT id FROM boots WHERE boot_id=?) ORDER BY id
            """
        )
        try rows.bind([count, since.milliseconds, boot], from: 1)
        return try rows.compactMap { row in
            guard let identity = try identity(row.required(0)) else { return nil }
            let (telemetry, data) = SightingPayload.unpack(row.data(4), identity.kind)
            guard !telemetry.isEmpty else { return nil }
            return Sighting(
                identity: identity,
                rssi: row.integer(1).map { Int($0) },
                telemetry: telemetry,
                data: data,
                stamp: row.stamp(boottime: 2)
            )
        }
    }

    /// Returns when the newest audio segment ended, if it is of this boot.
    func endOfAudio(ofBoot boot: String) throws -> Stamp? {
        let row = try query(
            """
            SELECT s.boottime, s.wall, s.frames, r.rate FROM segments s JOIN runs r ON r.id=s.run
            WHERE s.id=(SELECT max(id) FROM segments)
            AND s.boot=(SELECT id FROM boots WHERE boot_id=?)
            """
        )
        try row.bind(boot, at: 1)
        guard try row.step(), row.required(2).isPlausible, row.required(3) > 0 else { return nil }
        let length = row.required(2) * 1_000_000 / row.required(3)
        return row.stamp(boottime: 0).advanced(by: .microseconds(length))
    }
}

extension Queue {
    /// The maximum time that a starting source waits for the disk: new data is worth more.
    private static let sourceLimit = Duration.seconds(2)

    /// Returns this boot's readings of the last ten minutes, including those not on disk yet.
    ///
    /// Empty if they cannot be read in time: then a reading may be stored once more.
    package func recentReadings() -> [Sighting] {
        let since = settings.clock.now() - .seconds(600)
        let found = try? flushed(within: Self.sourceLimit).reader()
            .sightingsWithReadings(ofBoot: settings.bootID, since: since, among: 60_000)
        return found ?? []
    }

    /// Returns when the last audio ended, if that was in this boot.
    package func endOfAudio() -> Stamp? {
        if let end = sound.withLock({ $0.stamp }) { return end }
        let boot = settings.bootID
        let stored = try? flushed(within: Self.sourceLimit).reader().endOfAudio(ofBoot: boot)
        let reported = AudioEnd.stamp(remembered(AudioEnd.memo), boot: boot)
        return [stored ?? nil, reported].compactMap { $0 }.latest
    }
}
