// What tells one measurement of a sensor from the next, however often each is sent.
import Host
import Records

/// A sensor's own number for what it measured.
package enum MeasurementMark: Sendable, Equatable {
    /// RuuviTag: counts on with each measurement.
    case sequence(UInt16)
    /// Ruuvi Air, format 6: the low byte of the number that format E1 has in full.
    case shortSequence(UInt8)
    /// Ruuvi Air, format E1.
    case longSequence(UInt32)
    /// BTHome: another number, another measurement.
    case packet(UInt8)
    /// BTHome, encrypted: rises with each measurement; several payloads may share it.
    case counter(UInt32)
}

extension MeasurementMark {
    /// As it is stored with the readings.
    var stored: Int64 {
        switch self {
        case .sequence(let number): Int64(number) << 3
        case .shortSequence(let number): Int64(number) << 3 | 1
        case .longSequence(let number): Int64(number) << 3 | 2
        case .packet(let number): Int64(number) << 3 | 3
        case .counter(let number): Int64(number) << 3 | 4
        }
    }

    /// nil for bytes that no version has stored.
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

/// What a measurement turns out to be.
enum MeasurementVerdict: Equatable {
    case new
    /// Heard and kept before.
    case repeated
    /// Older than one that was kept: recorded by someone and sent again. `last`: the newest counter.
    case replayed(last: UInt32)
}

/// The last measurement that was kept of a sensor.
struct LastMeasurement {
    /// A packet id is only believed to mean the same measurement for so long (BTHome).
    static let packetWindow = Duration.seconds(4)
    /// For so long after a measurement in format E1 format 6 has nothing to add (docs.ruuvi.com).
    static let longFormWindow = Duration.seconds(60)
    /// While E1 was heard this lately, the next one is about to come.
    static let longFormTurn = Duration.seconds(5)
    /// A counter that goes back is a restart after such a silence, or when it is that low.
    static let counterSilence = Duration.seconds(600)
    static let restartedCounter: UInt32 = 100
    /// It is one, too, when it then rises by no more than this while nothing newer is heard.
    static let counterStep: UInt32 = 100
    /// Readings remembered of one mark: sensors send what does not fit one packet in two.
    private static let readingsLimit = 4

    private var mark: MeasurementMark?
    /// What was kept under the mark.
    private var readings: [Telemetry] = []
    private var heardAt = BootInstant(nanoseconds: 0)
    private var longFormAt: BootInstant?
    /// A counter that went back, and may be the first after a restart.
    private var lowCounter: UInt32?

    /// Whether a sighting is left out for the better one that is about to come.
    ///
    /// A Ruuvi Air sends both formats within milliseconds: of format 6 first, the limit would keep nothing of E1.
    func givesWay(_ mark: MeasurementMark, at now: BootInstant) -> Bool {
        guard case .shortSequence = mark, let longFormAt else { return false }
        return now - longFormAt < Self.longFormTurn
    }

    /// Changes only when the mark was last heard, and the counter that went back.
    mutating func judge(
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

    /// Whether a counter that went back rises again from there, as that of a restarted device does.
    private mutating func hasCountedOn(to counter: UInt32) -> Bool {
        if let low = lowCounter, counter > low, counter - low <= Self.counterStep { return true }
        lowCounter = counter
        return false
    }

    /// A new measurement was kept.
    mutating func keep(_ mark: MeasurementMark, _ telemetry: Telemetry, at now: BootInstant) {
        if mark != self.mark { readings.removeAll() }
        if readings.count == Self.readingsLimit { readings.removeFirst() }
        readings.append(telemetry)
        self.mark = mark
        heardAt = now
        lowCounter = nil
    }
}
