// Effort: when a source was listening, and why it was not.
package import Host

/// The state of a source in one interval (waypost-protocol(7), RECORDS).
package enum EffortState: String, Sendable, CaseIterable {
    case recorded
    case scheduledOff = "scheduled_off"
    case failed
    /// The source was not running, from what is known.
    case off
    case unknown
}

/// A point in time of a boot; nil is the boot in which the record is stored.
package struct BootStamp: Sendable, Equatable {
    /// The row of `boots`.
    package var boot: Int64?
    package var stamp: Stamp

    package init(boot: Int64? = nil, _ stamp: Stamp) {
        (self.boot, self.stamp) = (boot, stamp)
    }
}

/// A closed interval of one source; those of a source tile the time since its first start.
package struct Effort: Sendable, Equatable {
    /// When the interval was closed.
    package var stamp: Stamp
    package var source: String
    package var state: EffortState
    /// Why it did not record; empty if it did.
    package var reason: String
    package var from: BootStamp
    package var to: BootStamp
    /// The records stored in it; nil if that is not known.
    package var records: Int64?

    package init(
        stamp: Stamp,
        source: String,
        state: EffortState,
        reason: String,
        from: BootStamp,
        to: BootStamp,
        records: Int64?
    ) {
        (self.stamp, self.source, self.state, self.reason) = (stamp, source, state, reason)
        (self.from, self.to, self.records) = (from, to, records)
    }
}

extension Stream {
    package static let effort = Stream(7, "effort")
}

extension Effort: PlainRecord {
    package static let kind = StreamKind(
        .effort,
        wire: "waypost_effort",
        columns: [
            .text("source"), .text("state"), .text("reason"), .spanEnd("from", isTimestamp: true),
            .spanEnd("to"), .integer("records"),
        ],
        isAlwaysShown: false
    )

    package var values: [ColumnValue] {
        [
            .text(source), .text(state.rawValue), reason.isEmpty ? .none : .text(reason),
            .moment(boot: from.boot, from.stamp), .moment(boot: to.boot, to.stamp),
            records.map { .integer($0) } ?? .none,
        ]
    }
}
