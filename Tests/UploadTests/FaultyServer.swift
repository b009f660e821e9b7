import CLinux
import Foundation
import Glibc
import Host
import Support

/// A received request.
struct Request: Sendable {
    var method = ""
    var path = ""
    var headers: [String: String] = [:]
    var body: [UInt8] = []
}

/// The server's behaviour for one request.
enum Behaviour: Sendable {
    case answer(status: Int, body: String, headers: [String] = [])
    /// Reads the request and hangs up without an answer.
    case hangUp
    /// Sends half of an answer and hangs up.
    case cut
    /// Reads the request and never answers.
    case stall
    /// Reads the request, runs this on the connection, and closes it.
    case play(@Sendable (Int32) -> Void)

    static let ok = Behaviour.answer(status: 200, body: "{}")
    /// The success answer of an object store.
    static let stored = Behaviour.answer(status: 200, body: "", headers: ["ETag: \"1\""])
}

/// An HTTP server on loopback that behaves as scripted, request by request, on its own thread.
final class FaultyServer: Sendable {
    private let server: PlainServer
    private let script: Script

    /// Starts the server; `behaviour` is called for each request.
    init(
        port: UInt16 = 0,
        _ behaviour: @escaping @Sendable (Request) -> Behaviour
    ) throws {
        let script = Script(stop: try StopSignal(), behaviour: behaviour)
        self.script = script
        server = try PlainServer(port: port) { script.serve($0) }
    }

    var port: UInt16 { server.port }
    var requests: [Request] { script.seen.value }
    var connectionCount: Int { server.connectionCount }
    var endpoint: String { "http://127.0.0.1:\(port)/api/ingest" }

    func close() {
        script.stop.raise()
        server.close()
    }
}

/// Runs a server's script on a connection.
private struct Script: Sendable {
    let stop: StopSignal
    let seen = Locked([Request]())
    let behaviour: @Sendable (Request) -> Behaviour

    func serve(_ client: Int32) {
        var buffer: [UInt8] = []
        while let request = read(client, &buffer) {
            seen.update { $0.append(request) }
            switch behaviour(request) {
            case .answer(let status, let body, let headers):
                let more = headers.map { $0 + "\r\n" }.joined()
                send(
                    client,
                    "HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\n\(more)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
                )
            case .hangUp: return
            case .cut:
                send(client, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"acc")
                return
            case .stall:
                var entries = [PollEntry(stop.descriptor), PollEntry(client)]
                _ = wait(for: &entries)
                return
            case .play(let act):
                act(client)
                return
            }
        }
    }

    private func send(_ client: Int32, _ text: String) {
        let bytes = Array(text.utf8)
        _ = Glibc.send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    private func read(_ client: Int32, _ buffer: inout [UInt8]) -> Request? {
        let blank = Array("\r\n\r\n".utf8)
        var end = buffer.firstRange(of: blank)
        while end == nil {
            guard fill(client, &buffer) else { return nil }
            end = buffer.firstRange(of: blank)
        }
        guard let end else { return nil }
        let lines = String(decoding: buffer[..<end.lowerBound], as: UTF8.self).components(
            separatedBy: "\r\n"
        )
        var request = Request()
        request.method = lines[0].split(separator: " ").first.map(String.init) ?? ""
        request.path = lines[0].split(separator: " ").dropFirst().first.map(String.init) ?? ""
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            request.headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        let length = Int(request.headers["content-length"] ?? "") ?? 0
        while buffer.count < end.upperBound + length {
            guard fill(client, &buffer) else { return nil }
        }
        request.body = Array(buffer[end.upperBound..<(end.upperBound + length)])
        buffer.removeSubrange(..<(end.upperBound + length))
        return request
    }

    private func fill(_ client: Int32, _ buffer: inout [UInt8]) -> Bool {
        var block = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(client, &block, block.count, 0)
        guard count > 0 else { return false }
        buffer += block.prefix(count)
        return true
    }
}
