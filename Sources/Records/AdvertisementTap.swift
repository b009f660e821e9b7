// Passes advertisements from the beacon source to outputs, beside the queue.
import Host
import Synchronization

/// An advertisement as the controller reported it.
package struct RawAdvertisement: Sendable, Equatable {
    package var address: BluetoothAddress
    package var isRandomAddress: Bool
    /// dBm; nil if the controller could not measure it.
    package var rssi: Int?
    /// At most 1650 bytes.
    package var data: [UInt8]

    package init(address: BluetoothAddress, isRandomAddress: Bool, rssi: Int?, data: [UInt8]) {
        (self.address, self.isRandomAddress) = (address, isRandomAddress)
        (self.rssi, self.data) = (rssi, data)
    }
}

/// A bounded buffer from the beacon source's thread to one reading thread with several readers.
///
/// The source never waits for a reader: if the buffer is full, the oldest advertisement is dropped.
/// Each advertisement has a number, and a reader whose next number was dropped learns how many it
/// lost. While it is closed, the source reads one flag per event and nothing else happens.
package final class AdvertisementTap: Sendable {
    /// The most advertisements in the buffer, and the most bytes of their data.
    package static let limit = 4096
    package static let byteLimit = 512 << 10

    private struct Buffer {
        /// Allocated while the tap is open.
        var slots: [RawAdvertisement?] = []
        var bytes = 0
        /// The number of the oldest advertisement, and of the next one to come.
        var first: UInt64 = 0
        var end: UInt64 = 0
        /// Signalled once the advertisement before this number has come.
        var wakesAt: UInt64 = .max

        mutating func dropFirst() {
            let place = Int(first % UInt64(slots.count))
            bytes -= slots[place]?.data.count ?? 0
            slots[place] = nil
            first += 1
            invariant(first <= end && bytes >= 0, "only what came is dropped")
        }
    }

    private let flag = Atomic(false)
    private let buffer = Mutex(Buffer())
    private let wakeup: Wakeup

    package init() throws { wakeup = try Wakeup() }

    /// Readable when the reading thread should read.
    package var descriptor: Int32 { wakeup.descriptor }

    /// Whether anybody wants advertisements.
    package var isOpen: Bool { flag.load(ordering: .relaxed) }

    // MARK: The source's thread

    /// Adds an advertisement.
    package func pass(_ advertisement: RawAdvertisement) {
        let wakes = buffer.withLock { buffer in
            guard !buffer.slots.isEmpty else { return false }
            let size = advertisement.data.count
            while buffer.end - buffer.first >= UInt64(buffer.slots.count)
                || (buffer.bytes + size > Self.byteLimit && buffer.first < buffer.end)
            {
                buffer.dropFirst()
            }
            buffer.slots[Int(buffer.end % UInt64(buffer.slots.count))] = advertisement
            buffer.bytes += size
            buffer.end += 1
            invariant(
                buffer.end - buffer.first <= UInt64(buffer.slots.count),
                "the buffer holds what it has room for"
            )
            guard buffer.end >= buffer.wakesAt else { return false }
            buffer.wakesAt = .max
            return true
        }
        if wakes { wakeup.signal() }
    }

    // MARK: The reading thread

    /// Opens or closes it; a closed one holds no memory.
    package func set(open: Bool) {
        buffer.withLock { buffer in
            guard open == buffer.slots.isEmpty else { return }
            buffer.slots = open ? Array(repeating: nil, count: Self.limit) : []
            (buffer.first, buffer.bytes, buffer.wakesAt) = (buffer.end, 0, .max)
        }
        flag.store(open, ordering: .relaxed)
    }

    /// The number of the next advertisement to come.
    package var end: UInt64 { buffer.withLock { $0.end } }

    /// Returns at most `limit` advertisements from the number `next` on, which it advances.
    ///
    /// `lost`: how many from `next` on were dropped before they were read.
    package func read(
        _ next: inout UInt64,
        atMost limit: Int
    ) -> (advertisements: [RawAdvertisement], lost: Int) {
        let from = next
        let found = buffer.withLock { buffer in
            let start = max(from, buffer.first)
            let end = min(buffer.end, start + UInt64(limit))
            let read =
                start < end
                ? (start..<end).compactMap { buffer.slots[Int($0 % UInt64(buffer.slots.count))] }
                : []
            return (read: read, start: start)
        }
        next = found.start + UInt64(found.read.count)
        return (found.read, Int(found.start - from))
    }

    /// Forgets the advertisements before a number: all readers have them.
    package func forget(before number: UInt64) {
        buffer.withLock { buffer in
            while buffer.first < min(number, buffer.end), !buffer.slots.isEmpty {
                buffer.dropFirst()
            }
        }
    }

    /// Signals `descriptor` once the advertisements before `number` have come.
    package func wake(at number: UInt64) {
        let isThere = buffer.withLock { buffer in
            buffer.wakesAt = buffer.end >= number ? .max : number
            return buffer.end >= number
        }
        if isThere { wakeup.signal() }
    }

    package func clear() { wakeup.clear() }
}
