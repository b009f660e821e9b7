// Events: incidents that affect how the data was collected.
package import Host

/// The kinds of event (waypost-protocol(7), RECORDS).
package enum EventKind: String, Sendable, CaseIterable {
    case started
    case stopped
    case clockStep = "clock_step"
    case clockSynced = "clock_synced"
    case sourceLost = "source_lost"
    case sourceRecovered = "source_recovered"
    case gap
    case evicted
    case quarantined
    case databaseSalvaged = "database_salvaged"
    case storageLow = "storage_low"
    case unexpectedDuplicates = "unexpected_duplicates"
    case settingsChanged = "settings_changed"
}

/// A value in an event's `detail`.
package enum EventValue: Sendable, Equatable {
    case text(String)
    case integer(Int64)
    case number(Double)
    case time(WallTime)
    /// A time by the clock that the event sees, right or wrong; it is corrected with the event.
    case seen(WallTime)
    /// A time of an earlier boot, already corrected as far as possible, whatever clock the event
    /// sees.
    case known(WallTime)
}

/// One event; `detail` keeps its order.
package struct Event: Sendable, Equatable {
    package var kind: EventKind
    /// The part of the gateway concerned: `beacons`, `location`, `audio`, `clock`, `storage`,
    /// `gateway`.
    package var source: String
    package var detail: [(key: String, value: EventValue)]
    package var stamp: Stamp
    /// The loss that the event reports, if records were never made; recorded with the event.
    package var loss: Loss?

    package init(
        _ kind: EventKind,
        source: String,
        detail: [(key: String, value: EventValue)] = [],
        stamp: Stamp,
        loss: Loss? = nil
    ) {
        self.kind = kind
        self.source = source
        self.detail = detail
        self.stamp = stamp
        self.loss = loss
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.kind == right.kind && left.source == right.source && left.stamp == right.stamp
            && left.loss == right.loss
            && left.detail.elementsEqual(right.detail, by: ==)
    }
}

extension Stream {
    package static let events = Stream(4, "events")
}

extension Event: PlainRecord {
    package static let kind = StreamKind(
        .events,
        wire: "waypost_events",
        columns: [.text("kind"), .text("source"), .json("detail")]
    )

    package var values: [ColumnValue] {
        [.text(kind.rawValue), .text(source), .text(EventDetail.encode(detail))]
    }
}
