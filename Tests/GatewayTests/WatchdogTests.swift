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
        let fixture = try GatewayFixture()
        try waitUntil("three heartbeats") { fixture.beats.value >= 3 }
        fixture.stop()
    }

    @Test func hungThread_isReportedByCall_andStopsHeartbeats() throws {
        let (isIn, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let fixture = try GatewayFixture(reload: { configuration in
            isIn.signal()
            _ = mayGo.wait(timeout: .now() + 60)
            return configuration
        })
        try waitUntil("a heartbeat") { fixture.beats.value >= 1 }
        fixture.signal(SIGHUP)
        #expect(isIn.wait(timeout: .now() + 60) == .success)
        try waitUntil("its name") {
            fixture.errors.contains { $0.hasPrefix("reload: no heartbeat for ") }
        }
        try waitUntil("silence") {
            let before = fixture.beats.value
            return fixture.fiveTicksPass() && fixture.beats.value == before
        }
        let before = fixture.beats.value
        mayGo.signal()
        try waitUntil("heartbeats again") { fixture.beats.value >= before + 2 }
        fixture.stop()
    }

    @Test func stop_isObeyedWhileAReloadHangs() throws {
        let (isIn, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let fixture = try GatewayFixture(reload: { configuration in
            isIn.signal()
            _ = mayGo.wait(timeout: .now() + 120)
            return configuration
        })
        fixture.signal(SIGHUP)
        #expect(isIn.wait(timeout: .now() + 60) == .success)
        fixture.stop()
        mayGo.signal()
    }

    /// A FIFO in place of a file, which only the service's user can have put there.
    @Test func pipeInTheStateDirectory_holdsUpNobody() throws {
        let endpoint = "http://127.0.0.1:1/api/ingest"
        let fixture = try GatewayFixture(change: { configuration in
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
        try waitUntil("a heartbeat") { fixture.beats.value >= 1 }
        let mark = fixture.configuration.stateDirectory + "/enrolled"
        // Without a writer, opening it blocks.
        try #require(mkfifo(mark + ".fifo", 0o600) == 0)
        try #require(rename(mark + ".fifo", mark) == 0)
        for _ in 0..<3 { #expect(fixture.fiveTicksPass()) }
        #expect(!fixture.errors.contains { $0.contains("no heartbeat") }, "\(fixture.errors)")
        fixture.stop()
    }
}
