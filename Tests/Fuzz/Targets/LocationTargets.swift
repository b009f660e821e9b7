// Fuzz targets for data from gpsd.
import FuzzSupport
import Glibc
import Host
import Queue
import Records
import Support

@testable import Location

enum LocationTargets {
    static let all = [FuzzTarget(name: "gpsd", run: reports)]

    /// A connection to unpack lines with; its peer never reads.
    private static let connection = Connected()

    private final class Connected: @unchecked Sendable {
        // Unchecked because one target uses it, on one thread.
        var gpsd: GPSDConnection

        init() {
            let (_, port) = listening(backlog: 1)
            do {
                gpsd = try GPSDConnection(
                    host: "127.0.0.1",
                    port: port,
                    until: StopSignal()
                )
            } catch {
                fatalError("\(error)")
            }
        }
    }

    /// Feeds whole lines to gps_unpack, epochs, limits and the GNSS receiver's time.
    private static func reports(_ input: [UInt8]) {
        var merger = EpochMerger()
        var limit = FixLimit(interval: .seconds(1), minDistance: 1)
        var receiverTime = ReceiverTime()
        var stamp = Stamp(boot: BootInstant(nanoseconds: 0), wall: WallTime(milliseconds: 0))
        var lines = LineBuffer()
        lines.append(input + [10])
        while let next = lines.next(limit: GPSDLine.limit) {
            guard case .whole(let line) = next else { continue }
            stamp = stamp.advanced(by: .milliseconds(500))
            guard let (report, _) = connection.gpsd.unpack(line),
                case .position(let position) = report
            else { continue }
            guard let fix = merger.add(position, at: stamp)?.fix else { continue }
            _ = receiverTime.add(fix)
            precondition(abs(fix.latitude) <= 90 && abs(fix.longitude) <= 180)
            precondition([fix.altitude, fix.speed, fix.course].allSatisfy { $0?.isFinite ?? true })
            _ = limit.admits(fix)
        }
    }
}
