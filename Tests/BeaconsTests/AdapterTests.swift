// The whole source against a real controller (Bumble) over TCP, which comes and goes.
import CBlueZ
import CLinux
import Configuration
import Foundation
import Glibc
import Host
import Queue
import Records
import SourceSupport
import StatusBoard
import Support
import Synchronization
import Testing

import Beacons

/// `Tests/Peers/beacons.py` in a process of its own.
private final class SimulatedBeacons {
    private static let root = Tree.root

    private let process = Process()
    let port: UInt16

    struct NotStarted: Error {
        var said: String
    }

    init(radio: String = "mixed", port: UInt16 = 0) throws {
        process.executableURL = URL(fileURLWithPath: Tree.python)
        process.arguments = [
            Self.root.appendingPathComponent("Tests/Peers/beacons.py").path,
            "--port", "\(port)", "--radio", radio,
        ]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        var said = Data()
        while !said.contains(UInt8(ascii: "\n")) {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { break }
            said += more
        }
        let words = String(decoding: said, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard words.prefix(2) == ["listening", "on"], let last = words.last, let port = UInt16(last)
        else {
            process.terminate()
            throw NotStarted(said: words.joined(separator: " "))
        }
        self.port = port
    }

    func kill() {
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    deinit {
        if process.isRunning { kill() }
    }
}

/// A controller over TCP that answers what comes before the scan, and then sends reports for ever.
private final class FloodingController: Sendable {
    let port: UInt16
    private let stop: StopSignal
    private let thread: Mutex<Slot>

    private struct Slot: ~Copyable { var thread: OwnThread? }

    init() throws {
        let (number, port) = listening(backlog: 1)
        let stop = try StopSignal()
        self.stop = stop
        self.port = port
        thread = Mutex(
            Slot(
                thread: try OwnThread("flood") {
                    let listener = Descriptor(owning: number)
                    FloodingController.serve(listener.number, stop)
                }
            )
        )
    }

    private static func serve(_ listener: Int32, _ stop: StopSignal) {
        var entries = [PollEntry(listener), PollEntry(stop.descriptor)]
        _ = wait(for: &entries)
        guard !stop.isRaised else { return }
        let client = Descriptor(owning: accept(listener, nil, nil))
        var command = [UInt8](repeating: 0, count: 300)
        let report = [4] + Event.legacy(Event.legacyReport(Sample.iBeacon))
        let flood = Array(repeatElement(report, count: 1000).joined())
        while recv(client.number, &command, command.count, 0) >= 4 {
            let answer = [4, 0x0E, 4, 1, command[1], command[2], 0]
            _ = send(client.number, answer, answer.count, Int32(MSG_NOSIGNAL))
            guard command[1...2] == [0x0C, 0x20], command[4] == 1 else { continue }
            while !stop.isRaised {
                var entries = [
                    PollEntry(client.number, PollEntry.writable), PollEntry(stop.descriptor),
                ]
                _ = wait(for: &entries)
                let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                let sent = send(client.number, flood, flood.count, flags)
                // Only whole reports may follow each other.
                guard sent > 0 else { return }
                let rest = Array(
                    flood[sent...].prefix((report.count - sent % report.count) % report.count)
                )
                guard rest.isEmpty || send(client.number, rest, rest.count, Int32(MSG_NOSIGNAL)) > 0
                else { return }
            }
            return
        }
    }

    func end() {
        stop.raise()
        thread.withLock { $0.thread.take() }?.join()
    }
}

@Suite(.serialized) struct AdapterTests {
    private func settings(_ port: UInt16) -> BeaconSettings {
        BeaconSettings { $0.source = .controller(HostPort(host: "127.0.0.1", port: port)) }
    }

    @Test(
        .enabled(if: Tree.hasTool(Tree.python), "deploy/test --prepare makes it"),
        arguments: [("mixed", "legacy"), ("legacy", "legacy"), ("extended", "extended")]
    )
    func controller_isScannedAndHeard(radio: String, detail: String) throws {
        let beacons = try SimulatedBeacons(radio: radio)
        let adapter = try RunningAdapter(settings(beacons.port))
        defer { adapter.stop() }
        let expected: Set<String> = [
            "ibeacon f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/7",
            "ibeacon f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/8",
            "eddystone_uid edd1ebeac04e5defa017/0bdb87539b67",
            "eddystone_tlm C0:FF:EE:00:00:03", "ruuvi CB:B8:33:4C:88:4F",
        ]
        #expect(
            eventually {
                Set(
                    adapter.sink.sightings.map {
                        "\($0.identity.kind.name) \($0.identity.beaconID)"
                    }
                ) == expected
            }
        )
        #expect(
            eventually {
                Set(adapter.sink.sightings.map(\.rssi)).count > 3
            }
        )
        adapter.stop()
        let report = adapter.board.state.value
        #expect(report?.detail == "passive scan, \(detail)")
        #expect(report?.device == "h4:127.0.0.1:\(beacons.port)")
        #expect(report?.records == adapter.sink.sightings.count)
        #expect(report?.lastRecordAt == adapter.sink.sightings.last?.stamp)
        #expect(report?.restarts == 0)
        #expect(adapter.board.failure == nil)
    }

    @Test(.enabled(if: Tree.hasTool(Tree.python), "deploy/test --prepare makes it"))
    func gatewayThatComesBack_getsAWorkingController() throws {
        let beacons = try SimulatedBeacons()
        for _ in 0..<3 {
            let adapter = try RunningAdapter(settings(beacons.port))
            defer { adapter.stop() }
            #expect(eventually { adapter.sink.sightings.count > 5 })
        }
    }

    @Test(.enabled(if: Tree.hasTool(Tree.python), "deploy/test --prepare makes it"))
    func controllerThatDies_isTriedAgainUntilItIsBack() throws {
        let first = try SimulatedBeacons()
        let adapter = try RunningAdapter(settings(first.port))
        defer { adapter.stop() }
        #expect(eventually { adapter.sink.sightings.count > 3 })
        first.kill()
        #expect(eventually { adapter.board.failure != nil })
        let before = adapter.sink.sightings.count
        let second = try SimulatedBeacons(port: first.port)
        #expect(eventually { adapter.sink.sightings.count > before + 3 })
        #expect(second.port == first.port)
        #expect((adapter.board.state.value?.restarts ?? 0) > 0)
        #expect(adapter.board.loadedDetail == "passive scan, legacy")
    }

    @Test(.enabled(if: Tree.hasTool(Tree.python), "deploy/test --prepare makes it"))
    func noController_saysSo_andStopsAtOnce() throws {
        let beacons = try SimulatedBeacons()
        let port = beacons.port
        beacons.kill()
        let adapter = try RunningAdapter(settings(port))
        #expect(eventually { adapter.board.failure != nil })
        #expect(
            adapter.board.failure?.message
                == "h4:127.0.0.1:\(port): Connection refused; is the controller running?"
        )
        adapter.stop()
        #expect(adapter.isFinished)
    }

    /// Reports without a pause: the status board still gets them, and a stop still works.
    @Test func busyController_delaysNeitherStatusNorStop() throws {
        let flood = try FloodingController()
        defer { flood.end() }
        let adapter = try RunningAdapter(settings(flood.port))
        #expect(eventually { (adapter.board.state.value?.records ?? 0) > 4 })
        // A thread that never says a word would be taken for one that hangs.
        adapter.life.asked()
        let asked = SystemClock().now()
        #expect(eventually { adapter.life.word.since > asked })
        adapter.raise()
        let isFinished = eventually { adapter.isFinished }
        #expect(isFinished)
        // Without its flood it would end in any case, and the test with it.
        flood.end()
        adapter.stop()
        #expect(adapter.board.failure == nil)
    }

    @Test func noAdapter_isAFailureAndNotTheEnd() throws {
        let adapter = try RunningAdapter(BeaconSettings { $0.source = .adapter(999) })
        #expect(eventually { adapter.board.failure != nil })
        #expect(adapter.board.failure?.message.hasPrefix("hci999: ") == true)
        #expect(!adapter.isFinished)
        adapter.stop()
        #expect(adapter.isFinished)
    }
}
