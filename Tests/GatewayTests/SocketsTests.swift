// The sockets of a running gateway: deleted, or asked by very many clients at once.
import CLinux
import Foundation
import Glibc
import Host
import Queue
import QueueSupport
import Records
import StatusBoard
import Support
import Testing
import Upload

import Daemon
import Setup
import Status

@Suite struct SocketsTests {
    @Test func socketsThatSomebodyRemoved_areMadeAgain() throws {
        let fixture = try GatewayFixture(change: { $0.userStreams = [UserStream(name: "weather")] })
        defer { fixture.stop() }
        try waitUntil("its start") { fixture.readies.value > 0 }
        let client = try ControlClient(fixture.configuration)
        for name in ["control.sock", "intake"] {
            try FileManager.default.removeItem(atPath: "\(fixture.folder)/run/\(name)")
        }
        try waitUntil("both sockets") {
            guard let peer = try? IntakePeer(fixture.folder + "/run/intake") else { return false }
            let line = #"{"stream": "weather", "data": {}}"#
            return try (try? ControlClient(fixture.configuration)) != nil
                && peer.ask(line) == #"{"accepted": 1}"#
        }
        // Connected clients still get answers.
        #expect(try client.ask(.init(.status), timeout: .seconds(60)).status != nil)
        var figures = stat()
        #expect(stat(fixture.folder + "/run/intake", &figures) == 0)
        #expect(figures.st_mode & 0o7777 == 0o660)
    }

    /// No client gets a reply before the sync that all wait for has ended.
    @Test func syncsOfAHundredPrograms_allWait() throws {
        let folder = TemporaryFolder()
        let queue = try Queue(at: folder.path + "/q")
        defer { queue.close() }
        let (hangs, ended) = (StateBox(true), StateBox(0))
        let uploader = Uploader(settings: UploadSettings(), queue: queue, board: Publisher()) {
            while hangs.value { usleep(1000) }
            throw Failure("there is nowhere to upload to")
        }
        let thread = try StoppableThread("upload") { uploader.run(until: $0) }
        for _ in 0..<100 { uploader.sync { _ in ended.update { $0 += 1 } } }
        #expect(ended.value == 0)
        hangs.update { $0 = false }
        try waitUntil("all ends") { ended.value == 100 }
        uploader.stop()
        thread.stop()
    }
}
