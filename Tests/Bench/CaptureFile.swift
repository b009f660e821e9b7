// The bench's advertisements as a controller sends them, in a capture that the beacon source reads.
import Glibc
import Host

/// Writes HCI advertising events in btsnoop format (datalink 1002, H4).
enum CaptureFile {
    static func write(to path: String, rows: Int) throws {
        guard let file = fopen(path, "wb") else {
            throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        var bytes = Array("btsnoop".utf8) + [0]
        bytes += Workload.bigEndian(1, 4) + Workload.bigEndian(1002, 4)
        for index in 0..<rows {
            append(record(index), at: index, to: &bytes)
            guard bytes.count > 1 << 16 || index == rows - 1 else { continue }
            guard fwrite(bytes, 1, bytes.count, file) == bytes.count else {
                throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
            }
            bytes.removeAll(keepingCapacity: true)
        }
    }

    private static func append(_ packet: [UInt8], at index: Int, to bytes: inout [UInt8]) {
        bytes += Workload.bigEndian(packet.count, 4)
        bytes += Workload.bigEndian(packet.count, 4)
        // Flags: received, event; no drops; the time in microseconds.
        bytes += Workload.bigEndian(3, 4)
        bytes += [0, 0, 0, 0]
        bytes += Workload.bigEndian(index * Int(Workload.interval.milliseconds) * 1000, 8)
        bytes += packet
    }

    /// One event with one report; every other beacon's controller speaks Bluetooth 5.
    private static func record(_ index: Int) -> [UInt8] {
        let data = Workload.advertisement(index)
        let address = Array(Workload.bigEndian(Int(Workload.address(index)), 6).reversed())
        let rssi = UInt8(bitPattern: Workload.rssi(index))
        var body: [UInt8] = []
        if index % 2 == 0 {
            body = [0x02, 1, 0, 1] + address
            body.append(UInt8(data.count))
            body += data
            body.append(rssi)
        } else {
            body = [0x0D, 1, 0, 0, 1] + address
            body += [1, 1, 1, 127, rssi]
            body += [UInt8](repeating: 0, count: 9)
            body.append(UInt8(data.count))
            body += data
        }
        return [0x04, 0x3E, UInt8(body.count)] + body
    }
}
