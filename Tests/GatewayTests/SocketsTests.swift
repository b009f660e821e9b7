// The sockets of a running gateway: removed by somebody, or asked by very many at once.
import CLinux
import Foundation
import Glibc
import Host
import Streams
import Support
import Testing
import Upload

@testable import Gateway

@Suite struct SocketsTests {
    @Test func socketsThatSomebodyRemoved_areMadeAgain() throws {
        let bench = try GatewayBench(change: { $0.userStreams = [UserStream(name: "weather")] })
        defer { bench.stop() }
        try waitUntil("its start") { bench.readies.value > 0 }
        let client = try ControlClient(bench.configuration)
        for name in ["control.sock", "intake"] {
            try FileManager.default.removeItem(atPath: "\(bench.folder)/run/\(name)")
        }
        try waitUntil("both sockets") {
            guard let peer = try? IntakePeer(bench.folder + "/run/intake") else { return false }
            let line = #"{"stream": "weather", "data": {}}"#
            return try (try? ControlClient(bench.configuration)) != nil
                && peer.ask(line) == #"{"accepted": 1}"#
        }
        // Who was connected is still heard.
        #expect(try client.ask(.init(.status), timeout: .seconds(60)).status != nil)
        var figures = stat()
        #expect(stat(bench.folder + "/run/intake", &figures) == 0)
        #expect(figures.st_mode & 0o7777 == 0o660)
    }

    /// None hears of an end before the sync that all of them wait for has one.
    @Test func syncsOfAHundredPrograms_allWait() throws {
        let folder = TemporaryFolder()
        let token = try folder.write("token", to: "token")
        // It takes a request and never answers.
        let listener = Descriptor(owning: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(listener.number, $0, length)
                _ = getsockname(listener.number, $0, &length)
            }
        }
        listen(listener.number, 8)
        let port = UInt16(bigEndian: address.sin_port)
        let bench = try GatewayBench(change: {
            $0.upload.endpoint = "http://127.0.0.1:\(port)/api/ingest"
            $0.upload.tokenFile = token
        })
        defer { bench.stop() }
        try waitUntil("its start") { bench.readies.value > 0 }
        let clients = try (0..<100).map { _ in try ControlClient(bench.configuration) }
        var ends: [Int: ControlReply] = [:]
        // Each is told of changes meanwhile; who does not read is closed.
        func read() {
            for (place, client) in clients.enumerated() where ends[place] == nil {
                while ends[place] == nil, let reply = client.next(timeout: .zero) {
                    if reply.done != nil { ends[place] = reply }
                }
            }
        }
        for (place, client) in clients.enumerated() {
            let reply = try client.ask(.init(.sync), timeout: .seconds(60))
            if reply.done != nil { ends[place] = reply }
            read()
        }
        #expect(ends.isEmpty)
        shutdown(listener.number, Int32(SHUT_RDWR))
        try waitUntil("all ends") {
            read()
            return ends.count == clients.count
        }
        #expect(ends.values.allSatisfy { $0.sync?.left != nil })
    }
}
