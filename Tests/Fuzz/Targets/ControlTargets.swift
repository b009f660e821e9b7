// Fuzz targets for the control socket, the snapshot, telemetry and dates.
import FuzzSupport
import Host
import Queue
import Records

@testable import Status

enum ControlTargets {
    static let all: [FuzzTarget] = [
        FuzzTarget(name: "control", run: request), FuzzTarget(name: "snapshot", run: snapshot),
        FuzzTarget(name: "telemetry") { input in
            guard let telemetry = Telemetry(packed: input) else { return }
            precondition(telemetry.readings.count <= input.count)
        },
        FuzzTarget(name: "date", run: date),
    ]

    private static func request(_ input: [UInt8]) {
        if let request = ControlRequest(line: input) {
            precondition(ControlRequest(line: request.json) == request)
        }
        if let reply = ControlReply(line: input) {
            _ = QuarantineList(reply.quarantine?.batches ?? []).text
            _ = reply.json
        }
    }

    private static func snapshot(_ input: [UInt8]) {
        guard let report = StatusReport(json: input) else { return }
        let screen = StatusScreen(report, now: WallTime(milliseconds: 0), isColoured: false).text
        precondition(!screen.contains("\u{1B}"))
        _ = HealthRules.evaluate(report)
    }

    private static func date(_ input: [UInt8]) {
        guard let time = WallTime(rfc3339: String(decoding: input, as: UTF8.self)) else { return }
        precondition(WallTime(rfc3339: time.rfc3339) != nil)
    }
}
