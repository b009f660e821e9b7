// From gpsd.
import Glibc
import Host
import Queue
import Streams

@testable import Location

enum LocationTargets {
    static let all = [
        FuzzTarget(name: "gpsd-lines", run: lines), FuzzTarget(name: "gpsd", run: reports),
    ]

    private static func lines(_ input: [UInt8]) {
        var splitter = LineSplitter()
        for piece in pieces(input) {
            splitter.append(piece) { line in
                precondition(!line.isEmpty && line.count <= LineSplitter.limit)
            }
        }
    }

    /// Lines are unpacked by a connection; nobody ever reads from the other end of this one.
    private static let connection = Connected()

    private final class Connected: @unchecked Sendable {
        // Unchecked because one target uses it, on one thread.
        let gpsd: GPSDConnection

        init() {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = bind(listener, $0, length)
                    _ = listen(listener, 1)
                    _ = getsockname(listener, $0, &length)
                }
            }
            do {
                gpsd = try GPSDConnection(
                    host: "127.0.0.1",
                    port: UInt16(bigEndian: address.sin_port),
                    until: StopSignal()
                )
            } catch {
                fatalError("\(error)")
            }
        }
    }

    /// Whole lines: gps_unpack, what is made of it, epochs, limits and the receiver's time.
    private static func reports(_ input: [UInt8]) {
        var splitter = LineSplitter()
        var merger = EpochMerger()
        var limit = FixLimit(interval: .seconds(1), minDistance: 1)
        var receiverTime = ReceiverTime()
        var stamp = Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: 0))
        splitter.append(input + [10]) { line in
            stamp = stamp.advanced(by: .milliseconds(500))
            guard let (report, _) = connection.gpsd.unpack(line),
                case .position(let position) = report
            else { return }
            _ = receiverTime.add(position, at: stamp)
            guard let fix = merger.add(position, at: stamp) else { return }
            precondition(abs(fix.latitude) <= 90 && abs(fix.longitude) <= 180)
            precondition([fix.altitude, fix.speed, fix.course].allSatisfy { $0?.isFinite ?? true })
            _ = limit.admits(fix)
        }
    }
}
