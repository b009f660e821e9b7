// The coverage of a day: recorded time, the rest with its reason, and records not at the server.
package import ServerBase

/// A UTC day of one stream of a device.
package struct DayCoverage {
    /// The names are those in the CSV and the classes in the style sheet.
    package enum State: String, CaseIterable {
        case recorded
        case waiting = "not_here_yet"
        case missing, lost, failed, off
        case scheduledOff = "scheduled_off"
        case unknown
        /// A stream of no source, without records.
        case none
    }

    /// The share of a day's planned time in a state.
    package struct Part: Equatable {
        package let state: State
        package let share: Double
    }

    /// The states of effort.
    package static let states = IndexedEffort.states.compactMap { State(rawValue: $0) }
    /// Milliseconds; a source takes some seconds to start and stop.
    private static let jitter: Int64 = 60_000

    package let day: Day
    /// False for a stream of no source, whose silence says nothing.
    let isOfSource: Bool
    /// Milliseconds in each of `states`.
    package internal(set) var lengths = states.map { _ in Int64(0) }
    /// Why the longest failure was one, or without a failure the longest time off.
    package internal(set) var reason = ""
    /// The records that effort counts, and those at the server.
    package internal(set) var (made, stored) = (Int64(0), Int64(0))
    /// The state of the records that are not at the server; nil if there are none.
    package internal(set) var absence: State?

    /// When a time off ends that began on this day or before; 0 without one.
    var until: Int64 = 0

    init(_ day: Day, isOfSource: Bool) { (self.day, self.isOfSource) = (day, isOfSource) }

    package var hasEffort: Bool { lengths.contains { $0 > 0 } }

    package func length(of state: State) -> Int64 {
        Self.states.firstIndex(of: state).map { lengths[$0] } ?? 0
    }

    /// The records that were made and are not stored.
    ///
    /// A commit after midnight, and a chunk across it, count for the other day: a difference of three
    /// records, or of a hundredth, is none.
    package var shortage: Int64 { made - stored > max(3, made / 100) ? made - stored : 0 }

    /// Milliseconds in which the source was not scheduled off.
    private var planned: Int64 { lengths.reduce(0, +) - length(of: .scheduledOff) }

    /// Missing records come first, then the longest part of the planned time.
    package var state: State {
        if let absence { return absence }
        let planned = planned
        if planned < Self.jitter {
            if stored > 0 { return .recorded }
            return length(of: .scheduledOff) > 0 ? .scheduledOff : isOfSource ? .unknown : .none
        }
        // Most days of most devices.
        if lengths[0] * 2 >= planned { return .recorded }
        let states: [State] = [.recorded, .failed, .off, .unknown]
        return states.max { length(of: $0) < length(of: $1) } ?? .unknown
    }

    /// The parts of the planned time in each state, best first; those of a few minutes are left out.
    package var parts: [Part] {
        let planned = planned
        if planned < Self.jitter {
            guard let absence, stored > 0 else { return [Part(state: state, share: 1)] }
            // How many records are missing is unknown.
            return [Part(state: .recorded, share: 0.7), Part(state: absence, share: 0.3)]
        }
        // Most days of most devices.
        guard lengths[0] < planned || absence != nil else {
            return [Part(state: .recorded, share: 1)]
        }
        let shares = [State.recorded, .unknown, .off, .failed].map {
            Part(state: $0, share: Double(length(of: $0)) / Double(planned))
        }
        let gone = absence == nil ? 0 : shares[0].share * Double(shortage) / Double(max(1, made))
        let here = Part(state: .recorded, share: shares[0].share - gone)
        let absent = Part(state: absence ?? .lost, share: gone)
        return ([here, absent] + shares.dropFirst()).filter { $0.share >= 0.005 }
    }

    /// From 0, nothing of the plan is here, to 1; 2 without a plan.
    var quality: Double {
        if state == .scheduledOff || state == .none { return 2 }
        return parts.first { $0.state == .recorded }?.share ?? 0
    }
}
