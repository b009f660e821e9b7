// Records for tests.
package import Host
package import Queue
package import Records
import Support

/// Returns the sighting of one of ten beacons, by default `number` milliseconds after `testStart`.
package func testSighting(_ number: Int, rssi: Int = -60, at stamp: Stamp? = nil) -> Sighting {
    Sighting(
        identity: BeaconIdentity(
            kind: .iBeacon,
            beaconID: "f7826da6/1/\(number % 10)",
            address: BluetoothAddress(value: UInt64(number % 10)),
            addressType: .randomStatic,
            txPower: -59
        ),
        rssi: rssi,
        stamp: stamp ?? testStart.advanced(by: .milliseconds(Int64(number)))
    )
}

/// Records a run of audio with `count` segments, each `bytes` long.
package func record(
    _ queue: Queue,
    segments count: Int,
    bytes: Int = 6000,
    from number: Int = 0
) {
    let run = AudioRun(id: queue.newRunID(), codec: .opus, rate: 16_000, device: "mic")
    queue.begin(run)
    for index in 0..<count {
        queue.accept(
            Segment(
                run: run.id,
                frames: 32_000,
                start: testStart.advanced(by: .seconds(2 * (number + index))),
                meanSquare: 0.01,
                data: [UInt8](repeating: UInt8(truncatingIfNeeded: number + index), count: bytes)
            )
        )
    }
    queue.end(run: run.id)
}
