// The sources' schedules as the status board shows them.
package import Schedule

/// Which sources are off by their schedule, and the position that the sun is computed for.
package struct ScheduleFigures: Sendable, Equatable {
    /// By source: `off until 04:12 UTC (sunrise-1h)`.
    package var off: [SourceName: String] = [:]
    /// Why a source runs although its schedule may be closed.
    package var remarks: [SourceName: String] = [:]
    /// To a hundredth of a degree; nil if no schedule needs it.
    package var position: SitePosition?

    package init() {}
}
