// Parses HCI events into advertising reports, legacy and extended.
import Host
import Records

/// One advertising report of the controller.
struct AdvertisingReport: Equatable {
    var address: BluetoothAddress
    var addressType: AddressType
    /// dBm; nil if the controller could not measure it.
    var rssi: Int?
    var data: ArraySlice<UInt8>
    /// The sender gives no address; `address` is zero.
    var isAnonymous = false

    /// The same for other programs, with its own copy of the data.
    var raw: RawAdvertisement {
        RawAdvertisement(
            address: address,
            isRandomAddress: addressType != .public,
            rssi: rssi,
            data: Array(data)
        )
    }
}

/// Parses advertising report events and reassembles fragmented reports.
///
/// LE Advertising Report and LE Extended Advertising Report: Core Specification, Vol 4, Part E,
/// 7.7.65.2 and 7.7.65.13.
struct ReportParser {
    /// Advertisers with incomplete reports; above this the oldest is dropped.
    static let fragmentLimit = 64
    /// Fragments of one report arrive within milliseconds; older ones belong to no later report.
    static let fragmentAge = Duration.seconds(5)
    /// The maximum length of advertising data (Vol 4, Part E, 7.8.54).
    private static let dataLimit = 1650

    private struct Key: Hashable {
        var address: UInt64
        var type: UInt8
        var set: UInt8
    }

    /// The data received so far of one advertiser's fragmented report.
    private struct Fragments {
        var data: [UInt8] = []
        /// Too long: the rest is skipped up to the last fragment.
        var isGivenUp = false
        var begun: UInt64
        var begunAt: BootInstant
    }

    private var fragments: [Key: Fragments] = [:]
    /// Counts started reports, to find the oldest.
    private var beginnings: UInt64 = 0
    /// Reports that were malformed, or whose end never arrived.
    private(set) var malformed = 0
    /// Reports that the controller truncated; the part received is passed on.
    private(set) var truncated = 0
    private var now = BootInstant(nanoseconds: 0)

    /// Returns the reports in an event; empty for any other event.
    ///
    /// `event` starts at the event code.
    mutating func parse(
        _ event: ArraySlice<UInt8>,
        at now: BootInstant = BootInstant(nanoseconds: 0)
    ) -> [AdvertisingReport] {
        self.now = now
        var cursor = ByteCursor(event)
        guard cursor.byte() == HCI.leMetaEvent, let length = cursor.byte() else { return [] }
        guard let parameters = cursor.bytes(Int(length)) else {
            malformed &+= 1
            return []
        }
        var body = ByteCursor(parameters)
        switch body.byte() {
        case HCI.advertisingReport: return reports(&body) { $0.legacy(&$1) }
        case HCI.extendedAdvertisingReport: return reports(&body) { $0.extended(&$1) }
        default: return []
        }
    }

    private enum Outcome {
        case report(AdvertisingReport)
        /// Nothing to report yet.
        case none
        case malformed
    }

    private mutating func reports(
        _ body: inout ByteCursor,
        _ next: (inout Self, inout ByteCursor) -> Outcome
    ) -> [AdvertisingReport] {
        var reports: [AdvertisingReport] = []
        for _ in 0..<(body.byte() ?? 0) {
            switch next(&self, &body) {
            case .report(let report): reports.append(report)
            case .none: break
            case .malformed:
                malformed &+= 1
                return reports
            }
        }
        return reports
    }

    private mutating func legacy(_ cursor: inout ByteCursor) -> Outcome {
        guard cursor.byte() != nil, let type = cursor.byte(), let address = cursor.littleEndian(6),
            let length = cursor.byte(), let data = cursor.bytes(Int(length)),
            let rssi = cursor.signed()
        else { return .malformed }
        return .report(report(type, address, rssi, data))
    }

    private mutating func extended(_ cursor: inout ByteCursor) -> Outcome {
        guard let eventType = cursor.littleEndian(2), let type = cursor.byte(),
            let address = cursor.littleEndian(6), cursor.bytes(2) != nil, let set = cursor.byte(),
            cursor.byte() != nil, let rssi = cursor.signed(), cursor.bytes(9) != nil,
            let length = cursor.byte(), let data = cursor.bytes(Int(length))
        else { return .malformed }
        let key = Key(address: address, type: type, set: set)
        if !fragments.isEmpty { giveUpOld() }
        // Bits 5 and 6: 0 complete, 1 more to come, 2 truncated by the controller.
        let status = eventType >> 5 & 3
        if status == 2 { truncated &+= 1 }
        guard status == 1 else {
            guard let gathered = fragments.removeValue(forKey: key) else {
                return .report(report(type, address, rssi, data))
            }
            return gathered.isGivenUp
                ? .none : .report(report(type, address, rssi, gathered.data[...] + data))
        }
        gather(data, for: key)
        return .none
    }

    private mutating func gather(_ data: ArraySlice<UInt8>, for key: Key) {
        if fragments[key] == nil {
            if fragments.count >= Self.fragmentLimit { giveUpOldest() }
            beginnings &+= 1
        }
        var gathered =
            fragments.removeValue(forKey: key) ?? Fragments(begun: beginnings, begunAt: now)
        if gathered.data.count + data.count <= Self.dataLimit {
            gathered.data.append(contentsOf: data)
        } else if !gathered.isGivenUp {
            gathered.isGivenUp = true
            malformed &+= 1
        }
        fragments[key] = gathered
        invariant(fragments.count <= Self.fragmentLimit, "incomplete reports are bounded")
    }

    /// Drops all incomplete reports because their link has ended; returns how many were lost.
    mutating func giveUpAll() -> Int {
        defer { fragments.removeAll() }
        return fragments.values.count { !$0.isGivenUp }
    }

    private mutating func giveUpOld() {
        for (key, gathered) in fragments where now - gathered.begunAt >= Self.fragmentAge {
            fragments[key] = nil
            if !gathered.isGivenUp { malformed &+= 1 }
        }
    }

    private mutating func giveUpOldest() {
        guard let oldest = fragments.min(by: { $0.value.begun < $1.value.begun }) else { return }
        fragments[oldest.key] = nil
        malformed &+= 1
    }

    private func report(
        _ type: UInt8,
        _ address: UInt64,
        _ rssi: Int8,
        _ data: ArraySlice<UInt8>
    ) -> AdvertisingReport {
        // 1 and 3 are random; 0 and 2 (resolved to an identity) public. The top two bits of a random
        // address give its kind (Vol 6, Part B, 1.3.2).
        let addressType: AddressType =
            switch (type & 1, address >> 46 & 3) {
            case (0, _): .public
            case (_, 3): .randomStatic
            case (_, 1): .randomResolvable
            default: .randomNonResolvable
            }
        return AdvertisingReport(
            address: BluetoothAddress(value: address),
            addressType: addressType,
            // 127: not available (7.7.65.2).
            rssi: rssi == 127 ? nil : Int(rssi),
            data: data,
            isAnonymous: type == 0xFF
        )
    }
}
