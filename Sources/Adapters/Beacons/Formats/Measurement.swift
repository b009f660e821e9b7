// Distinguishes a sensor's new measurements from repeats and replays.
import Host
import Records

/// A sensor's own number for a measurement.
package enum MeasurementMark: Sendable, Equatable {
    /// RuuviTag: increases with each measurement.
    case sequence(UInt16)
    /// Ruuvi Air, format 6: the low byte of the number in format E1.
    case shortSequence(UInt8)
    /// Ruuvi Air, format E1.
    case longSequence(UInt32)
    /// BTHome: a different number is a different measurement.
    case packet(UInt8)
    /// BTHome, encrypted: rises with each measurement; several payloads may share it.
    case counter(UInt32)
}

extension MeasurementMark {
    /// The number as it is stored with the readings.
    var stored: Int64 {
        switch self {
        case .sequence(let number): Int64(number) << 3
        case .shortSequence(let number): Int64(number) << 3 | 1
        case .longSequence(let number): Int64(number) << 3 | 2
        case .packet(let number): Int64(number) << 3 | 3
        case .counter(let number): Int64(number) << 3 | 4
        }
    }

    /// Reads a stored number; nil for one that no version has stored.
    init?(stored: Int64) {
        let number = stored >> 3
        switch stored & 7 {
        case 0: self = .sequence(UInt16(truncatingIfNeeded: number))
        case 1: self = .shortSequence(UInt8(truncatingIfNeeded: number))
        case 2: self = .longSequence(UInt32(truncatingIfNeeded: number))
        case 3: self = .packet(UInt8(truncatingIfNeeded: number))
        case 4: self = .counter(UInt32(truncatingIfNeeded: number))
        default: return nil
        }
    }
}

/// The decision on a sighting and the measurement in it.
enum MeasurementVerdict: Equatable {
    /// Over the rate limit: not stored.
    case tooOften
    case new
    /// Already stored.
    case repeated
    /// Older than a stored one: recorded by someone and replayed. `last` is the newest counter.
    case replayed(last: UInt32)
}

/// The last stored measurement of a sensor.
struct LastMeasurement {
    /// How long an equal packet id means the same measurement (BTHome).
    static let packetWindow = Duration.seconds(4)
    /// How long after format E1 a format 6 has nothing to add (docs.ruuvi.com).
    static let longFormWindow = Duration.seconds(60)
    /// If E1 was heard within this time, the next one is due soon.
    static let longFormTurn = Duration.seconds(5)
    /// A counter that goes back is a restart after such a silence, or if it is below
    /// `restartedCounter`.
    static let counterSilence = Duration.seconds(600)
    static let restartedCounter: UInt32 = 100
    /// It is also a restart if it then rises by at most this while nothing newer is heard.
    static let counterStep: UInt32 = 100
    /// Readings remembered per mark: sensors split over two packets what does not fit one.
    private static let readingsLimit = 4

    private var mark: MeasurementMark?
    /// The readings stored under the mark.
    private var readings: [Telemetry] = []
    private var heardAt = BootInstant(nanoseconds: 0)
    private var longFormAt: BootInstant?
    /// A counter that went back and may be the first after a restart.
    private var lowCounter: UInt32?

    /// Returns whether to drop a sighting in favour of the better one that is about to arrive.
    ///
    /// A Ruuvi Air sends both formats within milliseconds. If format 6 used the slot, the rate
    /// limit would drop E1.
    func givesWay(_ mark: MeasurementMark, at now: BootInstant) -> Bool {
        guard case .shortSequence = mark, let longFormAt else { return false }
        return now - longFormAt < Self.longFormTurn
    }

    /// Classifies a measurement; changes only the time the mark was last heard, and the counter
    /// that went back.
    mutating func evaluate(
        _ mark: MeasurementMark,
        _ telemetry: Telemetry,
        at now: BootInstant
    ) -> MeasurementVerdict {
        let silence = now - heardAt
        if case .longSequence = mark { longFormAt = now }
        if mark == self.mark { (heardAt, lowCounter) = (now, nil) }
        switch (mark, self.mark) {
        case (.counter(let counter), .counter(let last)) where counter < last:
            let isFresh = counter < Self.restartedCounter || silence >= Self.counterSilence
            return isFresh || hasCountedOn(to: counter) ? .new : .replayed(last: last)
        case (.shortSequence, .longSequence) where silence < Self.longFormWindow:
            return .repeated
        case (.longSequence(let long), .shortSequence(let short)):
            let isSame = UInt8(truncatingIfNeeded: long) == short
            return isSame && silence < Self.longFormWindow ? .repeated : .new
        case (.packet, _) where silence > Self.packetWindow:
            return .new
        default:
            return mark == self.mark && readings.contains(telemetry) ? .repeated : .new
        }
    }

    /// Returns whether a counter that went back is rising again, as after a device restart.
    private mutating func hasCountedOn(to counter: UInt32) -> Bool {
        if let low = lowCounter, counter > low, counter - low <= Self.counterStep { return true }
        lowCounter = counter
        return false
    }

    /// Remembers a new measurement that was stored.
    mutating func keep(_ mark: MeasurementMark, _ telemetry: Telemetry, at now: BootInstant) {
        if mark != self.mark { readings.removeAll() }
        if readings.count == Self.readingsLimit { readings.removeFirst() }
        readings.append(telemetry)
        self.mark = mark
        heardAt = now
        lowCounter = nil
    }
}
