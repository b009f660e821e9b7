// Reads and clears rfkill blocks (Documentation/driver-api/rfkill.rst, linux/rfkill.h).
import Glibc
import Host

/// The state of an rfkill switch, as /dev/rfkill reports it.
struct RFKillSwitch: Equatable {
    var index: UInt32
    var isBluetooth: Bool
    var isRemoved: Bool
    /// Switched off by a program.
    var isSoft: Bool
    /// Switched off by a button or the firmware; no program can change that.
    var isHard: Bool

    /// Parses a packet; nil if it is too short.
    ///
    /// Newer kernels append to the 8 bytes.
    init?(_ packet: ArraySlice<UInt8>) {
        var cursor = ByteCursor(packet)
        guard let index = cursor.littleEndian(4), let type = cursor.byte(),
            let operation = cursor.byte(), let soft = cursor.byte(), let hard = cursor.byte()
        else { return nil }
        self.index = UInt32(truncatingIfNeeded: index)
        isBluetooth = type == 2
        isRemoved = operation == 1
        isSoft = soft != 0
        isHard = hard != 0
    }

    /// The request that unblocks this radio: RFKILL_OP_CHANGE, not soft-blocked.
    var unblocking: [UInt8] {
        littleEndian(index) + [2, 2, 0, 0]
    }
}

/// The machine's Bluetooth switches.
struct RFKill {
    private static let settling = Duration.seconds(2)

    /// `/dev/rfkill`, or a test's replacement.
    var path = "/dev/rfkill"

    /// Removes every soft block from Bluetooth radios, and waits until the kernel has done so.
    ///
    /// Returns true if there was one. Throws if a hard block or missing rights prevent it.
    func unblock(for name: String, until stop: StopSignal) throws -> Bool {
        let number = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        let code = errno
        guard number >= 0 else {
            // A kernel without rfkill blocks nothing.
            if code == ENOENT { return false }
            throw Failure(
                "\(name): \(path): \(String(cString: strerror(code))); run `rfkill unblock bluetooth` as root",
                code: code == EACCES || code == EPERM ? .permission : nil
            )
        }
        let file = Descriptor(owning: number)
        return try unblock(on: file.number, for: name, until: stop)
    }

    func unblock(on descriptor: Int32, for name: String, until stop: StopSignal) throws -> Bool {
        var blocked: [UInt32: RFKillSwitch] = [:]
        Self.read(descriptor, into: &blocked)
        try Self.refuseHard(blocked, name)
        guard !blocked.isEmpty else { return false }
        for one in blocked.values {
            let request = one.unblocking
            guard write(descriptor, request, request.count) == request.count else {
                throw Failure(
                    "\(name): rfkill: \(String(cString: strerror(errno))); run `rfkill unblock bluetooth` as root",
                    code: errno == EACCES || errno == EPERM ? .permission : nil
                )
            }
        }
        // The kernel sends an event when it is done.
        let end = SystemClock().now() + Self.settling
        while !blocked.isEmpty, !stop.isRaised, SystemClock().now() < end {
            var entries = [PollEntry(descriptor), PollEntry(stop.descriptor)]
            _ = stop.wait(for: &entries, timeout: end - SystemClock().now())
            Self.read(descriptor, into: &blocked)
            try Self.refuseHard(blocked, name)
        }
        return true
    }

    private static func refuseHard(_ blocked: [UInt32: RFKillSwitch], _ name: String) throws {
        guard blocked.values.contains(where: \.isHard) else { return }
        throw Failure(
            "\(name): switched off by a hardware switch, which no program can change; `rfkill list` shows it"
        )
    }

    /// Updates `blocked` with all pending events.
    private static func read(_ descriptor: Int32, into blocked: inout [UInt32: RFKillSwitch]) {
        while let packet = KernelSocket.nextPacket(descriptor, atMost: 8) {
            guard let state = RFKillSwitch(packet), state.isBluetooth else { continue }
            let isBlocked = (state.isSoft || state.isHard) && !state.isRemoved
            blocked[state.index] = isBlocked ? state : nil
        }
    }
}
