// `waypost measure`: samples of made files and of a real gateway, and what follows from them.
import Foundation
import JSON
import Queue
import Records
import StatusBoard
import Support
import Testing

@testable import Daemon
@testable import Field
@testable import Host
@testable import Setup
@testable import Status
@testable import Upload

/// A board of made files, with a gateway that answers as the test wants.
private final class MeasuredBoard {
    let folder = TemporaryFolder()
    let clock = ManualClock(Stamp(boot: BootInstant(nanoseconds: 1), wall: StatusTests.now))
    var report = StatusTests().report()
    var files: SystemFiles { SystemFiles(root: folder.path) }
    var started = 20.0
    var pid = 1
    /// Changes the gateway's figures as they were read.
    var change: (inout GatewayFigures) -> Void = { _ in }

    init() throws {
        try folder.write("Pss: 9000 kB\nRss: 30000 kB\nPrivate_Dirty: 5000 kB\n", to: smaps)
        try folder.write("read_bytes: 7\nwrite_bytes: 1000\n", to: "proc/self/io")
        try folder.write("cpu 10 0 10 80 0 0 0 0 0 0\ncpu0 1 1\n", to: "proc/stat")
        try folder.write("Raspberry Pi 4 Model B Rev 1.4\u{0}", to: "proc/device-tree/model")
        try folder.write("48312\n", to: "sys/class/thermal/thermal_zone0/temp")
        for (name, bytes) in [("eth0", "100"), ("lo", "5")] { try setTraffic(name, bytes) }
        try setWakeups(100)
    }

    let smaps = "proc/self/smaps_rollup"

    func setTraffic(_ name: String, _ bytes: String) throws {
        for way in ["tx", "rx"] {
            try folder.write(bytes, to: "sys/class/net/\(name)/statistics/\(way)_bytes")
        }
    }

    func setWakeups(_ count: Int) throws {
        try folder.write("queue\n", to: "proc/self/task/7/comm")
        try folder.write(
            "nonvoluntary_ctxt_switches: 1\nvoluntary_ctxt_switches: \(count)\n",
            to: "proc/self/task/7/status"
        )
    }

    /// Measures for a while of the manual clock; `during` is called before each further sample.
    func measure(
        _ time: Duration = .seconds(25),
        during: @escaping (Int) -> Void = { _ in }
    ) throws -> BoardMeasurement {
        var samples = 0
        return try BoardMeasurement(for: time, files, clock: clock) {
            var figures = GatewayFigures(files)
            (figures.pid, figures.startedS, figures.cpuS) = (pid, started, Double(samples) / 10)
            change(&figures)
            var reply = ControlReply()
            (reply.figures, reply.status) = (figures, report)
            return reply
        } wait: { pause, _ in
            clock.advance(by: pause)
            samples += 1
            during(samples)
        }
    }
}

extension BoardMeasurement {
    fileprivate var object: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(json)) as? [String: Any]) ?? [:]
    }

    /// Why a figure is unknown; nil if it is known.
    fileprivate func reason(_ name: String) -> String? {
        guard object[name] is NSNull else { return nil }
        return (object["unknown"] as? [String: String])?[name]
    }
}

@Suite struct MeasureTests {
    @Test func figures_areTheGrowthFromTheFirstSampleToTheLast() throws {
        let board = try MeasuredBoard()
        let measurement = try board.measure { sample in
            _ = try? board.setWakeups(100 + sample * 50)
            _ = try? board.setTraffic("eth0", "\(100 + sample * 1000)")
            _ = try? board.folder.write("write_bytes: \(1000 + sample * 512)\n", to: "proc/self/io")
            _ = try? board.folder.write("cpu 20 0 15 145 20 0 0 0\n", to: "proc/stat")
            _ = try? board.folder.write("Pss: \(9000 + sample) kB\n", to: board.smaps)
            board.report.sources["beacons"]?.records += 40
            board.report.sources["beacons"]?.dropped += 2
        }
        let object = measurement.object
        // Samples after 0, 10, 20 and 25 s.
        #expect(object["samples"] as? Int == 4)
        #expect(object["seconds"] as? Double == 25)
        #expect(object["wakeups_per_s"] as? Double == 6)
        #expect(object["threads"] as? [String: Double] == ["queue": 6])
        #expect(object["own_written_bytes"] as? Int == 3 * 512)
        #expect(object["cpu_percent"] as? Double == 1.2)
        // Of 100 further ticks 65 are idle and 20 wait for a disk.
        #expect(object["board_busy_percent"] as? Double == 15)
        #expect(object["records"] as? [String: Int] == ["beacons": 120])
        #expect(object["dropped"] as? [String: Int] == ["beacons": 6])
        #expect(
            object["interface_bytes"] as? [String: [String: Int]] == [
                "eth0": ["sent": 3000, "received": 3000]
            ]
        )
        let pss = object["pss_bytes"] as? [String: Int]
        #expect(pss == ["median": 9002 * 1024, "p95": 9003 * 1024, "max": 9003 * 1024])
        #expect(object["model"] as? String == "Raspberry Pi 4 Model B Rev 1.4")
        #expect(object["temperature_c"] as? Double == 48.31)
        #expect(object["boot_to_start_s"] as? Double == 20)
    }

    @Test func page_is80ColumnsWide_andHasEachFigure() throws {
        let measurement = try MeasuredBoard().measure()
        let lines = measurement.text.split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= 80 })
        #expect((25...45).contains(lines.count))
        #expect(lines.contains("PSS               max 9.2 MB, median 9.2 MB, p95 9.2 MB"))
        #expect(lines.contains("undervoltage      unknown: this board does not report it"))
    }

    @Test func figuresThatCannotBeRead_areNull_withTheReason() throws {
        let board = try MeasuredBoard()
        for file in [board.smaps, "proc/self/io", "proc/stat", "proc/device-tree/model"] {
            try FileManager.default.removeItem(atPath: "\(board.folder.path)/\(file)")
        }
        try FileManager.default.removeItem(atPath: board.folder.path + "/sys")
        try FileManager.default.removeItem(atPath: board.folder.path + "/proc/self/task")
        board.report.sources["beacons"]?.state = .disabled
        board.started = 4000
        let measurement = try board.measure()
        let unknown = [
            "pss_bytes", "private_bytes", "own_written_bytes", "board_busy_percent", "model",
            "wakeups_per_s", "threads", "temperature_c", "undervoltage", "disk",
            "disk_written_bytes", "interface_bytes", "records", "audio_overruns", "gnss_drift_ppm",
            "boot_to_start_s", "boot_to_first_record_s", "boot_to_first_upload_s",
        ]
        for name in unknown { #expect(measurement.reason(name)?.isEmpty == false, "\(name)") }
        #expect(
            measurement.reason("boot_to_start_s") == "the gateway started 66 min after the boot"
        )
    }

    /// A PC has no device tree; some makers leave its name to the board's.
    @Test func boardWithoutADeviceTree_isNamedByItsFirmware() throws {
        let board = try MeasuredBoard()
        try FileManager.default.removeItem(atPath: board.folder.path + "/proc/device-tree/model")
        #expect(try board.measure().reason("model") == "neither device tree nor DMI names it")
        let names = [
            ("board_vendor", "AZW"), ("board_name", "MINI S12"),
            ("sys_vendor", "AZW"), ("product_name", "To be filled by O.E.M."),
        ]
        for (name, text) in names {
            try board.folder.write(text + "\n", to: "sys/class/dmi/id/" + name)
        }
        #expect(try board.measure().object["model"] as? String == "AZW MINI S12")
        try board.folder.write("QEMU\n", to: "sys/class/dmi/id/sys_vendor")
        try board.folder.write("Standard PC\n", to: "sys/class/dmi/id/product_name")
        #expect(try board.measure().object["model"] as? String == "QEMU Standard PC")
    }

    /// Memory and CPU are then those of the emulator, too.
    @Test func emulatedProgram_isSaidToBeOne() throws {
        let board = try MeasuredBoard()
        #if arch(arm64)
        let own = "aarch64"
        #else
        let own = "x86_64"
        #endif
        try board.folder.write(own + "\n", to: "proc/sys/kernel/arch")
        let native = try board.measure().object
        #expect(native["architecture"] as? String == native["program"] as? String)
        try board.folder.write("riscv64\n", to: "proc/sys/kernel/arch")
        let emulated = try board.measure()
        let program = try #require(emulated.object["program"] as? String)
        #expect(program.hasSuffix(", emulated: memory and CPU include the emulator"))
        #expect(emulated.object["architecture"] as? String == "riscv64")
    }

    /// Sound that was interrupted is no overrun; losses of before the measurement are not its own.
    @Test func lossesMeanwhile_areNamed_byStreamAndKind() throws {
        let board = try MeasuredBoard()
        func lose(_ kind: String, _ records: Int) {
            let time = StatusTests.now
            board.report.losses.removeAll { $0.kind == kind }
            board.report.losses.append(
                .init(stream: "audio", kind: kind, records: records, from: time, to: time)
            )
        }
        lose("evicted", 7)
        #expect(try board.measure().object["lost"] as? [String: [String: Int]] == [:])
        lose("gap", 2)
        let measurement = try board.measure { lose("gap", 2 + $0) }
        #expect(measurement.object["lost"] as? [String: [String: Int]] == ["audio": ["gap": 3]])
        #expect(measurement.text.contains("\nlost              audio gap 3\n"))
    }

    /// An interface that is plugged in again counts from 0, and another one was not there before.
    @Test func counterThatWasReset_isUnknown() throws {
        let board = try MeasuredBoard()
        let measurement = try board.measure { sample in
            try? board.setTraffic("eth0", sample == 1 ? "99" : "5000")
            try? board.setTraffic("wwan0", "\(sample)")
        }
        let interfaces = measurement.object["interface_bytes"] as? [String: Any]
        #expect(interfaces?["eth0"] is NSNull && interfaces?["wwan0"] is NSNull)
        #expect(measurement.text.contains("eth0 unknown, wwan0 unknown"))
    }

    /// The gateway gives the last time that the receiver knew.
    @Test func lostFix_isNoDrift() throws {
        let board = try MeasuredBoard()
        board.change = { ($0.gnssBootNs, $0.gnssMs) = (7, 1_795_000_000_000) }
        #expect(try board.measure(.seconds(7200)).gnssDrift == nil)
    }

    @Test func restart_endsTheMeasurement() throws {
        for restart in [{ $0.pid = 2 }, { $0.started = 30 }] as [(MeasuredBoard) -> Void] {
            let board = try MeasuredBoard()
            let error = #expect(throws: Failure.self) {
                try board.measure { if $0 == 2 { restart(board) } }
            }
            #expect(error?.message.contains("was restarted") == true)
        }
    }

    @Test func gatewayThatEnds_endsTheMeasurement() throws {
        var answers = 0
        let board = try MeasuredBoard()
        let error = #expect(throws: Failure.self) {
            try BoardMeasurement(for: .seconds(20), board.files, clock: board.clock) {
                answers += 1
                guard answers < 2 else { throw ControlError.gone(path: "/run/x") }
                var reply = ControlReply()
                (reply.figures, reply.status) = (GatewayFigures(board.files), board.report)
                return reply
            } wait: { pause, _ in
                board.clock.advance(by: pause)
            }
        }
        #expect(error?.message.contains("stopped answering") == true)
    }

    /// A clock that is 50 ppm fast, and fixes that come up to 80 ms late.
    @Test func drift_isFoundBehindTheDelayOfFixes() throws {
        let board = try MeasuredBoard()
        board.change = { figures in
            let now = board.clock.now().nanoseconds
            let delay = now / 10_000_000_000 % 9 * 10
            figures.gnssBootNs = now
            figures.gnssMs = 1_795_000_000_000 + (now - now / 20_000) / 1_000_000 - delay
        }
        let drift = try #require(try board.measure(.seconds(7200)).gnssDrift)
        #expect(abs(drift - 50) < 5)
        #expect(try board.measure(.seconds(180)).gnssDrift == nil)
    }

    @Test func bytesOfARequest_countForTheStreamThatWasInFlight() {
        var (tally, report) = (UploadTally(), UploadReport())
        let accepted = Stamp(boot: BootInstant(nanoseconds: 7), wall: StatusTests.now)
        for (stream, bytes) in [(Stream.audio, 900), (.beacons, 20), (.audio, 100)] {
            report.streams[stream, default: StreamUpload()].inFlight = 3
            tally.receive(report)
            report.streams[stream]?.inFlight = 0
            report.bytesSent += Int64(bytes)
            report.lastSuccessAt = accepted.advanced(by: .nanoseconds(report.bytesSent))
            tally.receive(report)
        }
        #expect(tally.bodyBytes == [.audio: 1000, .beacons: 20])
        #expect(tally.firstSuccessAt == BootInstant(nanoseconds: 907))
    }

    @Test func laterRunOfASource_keepsFirstRecordAndOverruns() {
        let stamp = Stamp(boot: BootInstant(nanoseconds: 7), wall: StatusTests.now)
        var meter = SourceMeter(device: "mic", board: Publisher())
        meter.admit(stamp)
        meter.admit(stamp.advanced(by: .seconds(9)))
        meter.overran()
        var later = meter.report
        later.firstRecordAt = stamp.advanced(by: .seconds(99))
        let sum = later.added(to: meter.report)
        #expect(sum.firstRecordAt == stamp)
        #expect(sum.overruns == 2)
    }

    @Test func realGateway_givesItsFigures() throws {
        let fixture = try GatewayFixture()
        defer { fixture.stop() }
        try waitUntil("its start") { fixture.readies.value > 0 }
        let measurement = try BoardMeasurement(for: .milliseconds(300)) {
            try ControlClient(fixture.configuration).ask(.init(.measure), timeout: .seconds(60))
        } wait: { pause, _ in
            Thread.sleep(forTimeInterval: pause.inSeconds)
        }
        let object = measurement.object
        #expect(measurement.first.gateway.pid == Int(getpid()))
        let pss = try #require(object["pss_bytes"] as? [String: Int])
        #expect((1_000_000...).contains(pss["median"] ?? 0))
        #expect((object["threads"] as? [String: Double])?["control"] ?? 0 > 0)
        #expect(measurement.reason("records") == "no source is on")
    }
}
