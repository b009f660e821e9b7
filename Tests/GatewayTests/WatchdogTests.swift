// The service manager gets heartbeats only while no thread of the gateway hangs.
import Foundation
import Glibc
import Host
import Setup
import Support
import Testing
import Upload

import Daemon

@Suite struct WatchdogTests {
    @Test func gatewayThatWorks_isHeardOf() throws {
        let bench = try GatewayBench()
        try waitUntil("three heartbeats") { bench.beats.value >= 3 }
        bench.stop()
    }

    @Test func threadThatHangs_isToldByItsCall_andTheWatchdogHearsOfUsNoMore_untilItGoesOn() throws
    {
        let (isIn, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let bench = try GatewayBench(reload: { configuration in
            isIn.signal()
            _ = mayGo.wait(timeout: .now() + 60)
            return configuration
        })
        try waitUntil("a heartbeat") { bench.beats.value >= 1 }
        bench.signal(SIGHUP)
        #expect(isIn.wait(timeout: .now() + 60) == .success)
        try waitUntil("its name") {
            bench.errors.contains { $0.hasPrefix("reload: no heartbeat for ") }
        }
        try waitUntil("silence") {
            let before = bench.beats.value
            return bench.fiveTicksPass() && bench.beats.value == before
        }
        let before = bench.beats.value
        mayGo.signal()
        try waitUntil("heartbeats again") { bench.beats.value >= before + 2 }
        bench.stop()
    }

    @Test func stop_isObeyedWhileAReloadHangs() throws {
        let (isIn, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let bench = try GatewayBench(reload: { configuration in
            isIn.signal()
            _ = mayGo.wait(timeout: .now() + 120)
            return configuration
        })
        bench.signal(SIGHUP)
        #expect(isIn.wait(timeout: .now() + 60) == .success)
        bench.stop()
        mayGo.signal()
    }

    /// A FIFO in place of a file, which only the service's user can have put there.
    @Test func pipeInTheStateDirectory_holdsUpNobody() throws {
        let endpoint = "http://127.0.0.1:1/api/ingest"
        let bench = try GatewayBench(change: { configuration in
            configuration.upload.isRequired = true
            configuration.upload.endpoint = endpoint
            let state = configuration.stateDirectory
            let files = FileManager.default
            try? files.createDirectory(atPath: state, withIntermediateDirectories: true)
            try? "\(endpoint)\n".write(
                toFile: state + "/enrolled",
                atomically: true,
                encoding: .utf8
            )
        })
        try waitUntil("a heartbeat") { bench.beats.value >= 1 }
        let mark = bench.configuration.stateDirectory + "/enrolled"
        // Without a writer, opening it blocks.
        try #require(mkfifo(mark + ".fifo", 0o600) == 0)
        try #require(rename(mark + ".fifo", mark) == 0)
        for _ in 0..<3 { #expect(bench.fiveTicksPass()) }
        #expect(!bench.errors.contains { $0.contains("no heartbeat") }, "\(bench.errors)")
        bench.stop()
    }
}
