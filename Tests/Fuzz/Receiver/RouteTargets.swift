// Fuzz targets for the server's own routes: pages, read API, login, enrolment, ingest.
import Foundation
import FuzzSupport
import Support

@testable import ServerBase
@testable import ServerWeb
@testable import ServerWiring

enum RouteTargets {
    static let all = [FuzzTarget(name: "receiver-routes", run: { RouteServer.shared.receive($0) })]
}

/// A whole server on a folder of its own with some records, a viewer and a code; shared by all
/// inputs.
private final class RouteServer: Sendable {
    static let shared = RouteServer()

    private let server: IngestServer
    private let session: String
    private static let temporary = TemporaryFolder()
    private let folder = RouteServer.temporary.path

    private init() {
        // The only instance lives as long as the process.
        atexit { try? FileManager.default.removeItem(atPath: RouteServer.temporary.path) }
        do {
            server = try IngestServer(
                directory: folder,
                tokens: TokenList(file: nil, folder: nil, acceptsAny: true),
                maxBody: 1 << 20,
                version: "fuzz",
                maxPerDay: 1 << 40,
                log: ServerLog(isQuiet: true)
            )
            let viewers = try Viewers(directory: folder)
            guard let token = try viewers.add("anna", .editor, at: Date()),
                let session = try viewers.logIn(token, at: Date())
            else { fatalError("no viewer") }
            self.session = session.text
        } catch {
            fatalError("\(error)")
        }
        for stream in ["places", "sound", "waypost_events", "birds"] { store(stream) }
    }

    /// Stores a record of each kind that a page shows.
    private func store(_ stream: String) {
        let members =
            #""latitude":47.1,"longitude":8.5,"rssi":-61,"beacon_id":"b","telemetry":{"t":1},"#
            + #""kind":"gap","source":"audio","detail":{"from":"2026-11-20T00:00:00Z"},"#
            + #""audio_data":"UklGRg==","audio_format":"wav","species":"=a""#
        let body = """
            {"stream_name":"\(stream)","device_id":"d1","data":[{"id":"\(stream)-1",\
            "timestamp":"2026-11-21T01:00:00Z",\(members)}],"batch_metadata":{"total_records":1}}
            """
        var head = RequestHead(method: "POST", path: "/api/ingest", address: "127.0.0.1")
        head.fields = [
            .token: "t", .contentType: "application/json", .idempotencyKey: "\"\(stream)\"",
        ]
        head.fields[.contentLength] = "\(body.utf8.count)"
        let answer = answer(head, Array(body.utf8))
        precondition(answer.status == 200, String(decoding: answer.body, as: UTF8.self))
    }

    private func answer(_ head: RequestHead, _ bytes: [UInt8]) -> HTTPAnswer {
        switch server.plan(head) {
        case .answer(let answer, _): return answer
        case .stream: return HTTPAnswer(200, body: [])
        case .body(let limit, _, let handler):
            let spool = Spool(folder: folder, memory: 1 << 16)
            do { try bytes.prefix(limit).withUnsafeBytes(spool.append) } catch {
                fatalError("\(error)")
            }
            return handler?(spool) ?? server.answer(head, spool)
        }
    }

    /// Reads an input as a request: method, target, lines of fields, an empty line, the body.
    ///
    /// Checks that the server never fails, and that what it calls JSON is JSON.
    func receive(_ input: [UInt8]) {
        var lines = input.split(separator: 10, omittingEmptySubsequences: false)[...]
        let first = String(decoding: lines.popFirst() ?? [], as: UTF8.self)
        let parts = first.split(separator: " ", maxSplits: 1).map(String.init)
        let target = parts.last ?? "/"
        let query = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var head = RequestHead(
            method: parts.count == 2 ? parts[0] : "GET",
            path: Self.decoded(query.first ?? "/"),
            address: "192.0.2.\(input.count % 200)"
        )
        for pair in query.dropFirst().joined().split(separator: "&").reversed() {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            head.query[Self.decoded(sides[0])] = Self.decoded(sides.count == 2 ? sides[1] : "")
        }
        head.fields[.cookie] = "waypost_viewer=\(session)"
        while let line = lines.popFirst(), !line.isEmpty {
            let sides = String(decoding: line, as: UTF8.self).split(separator: ":", maxSplits: 1)
            let field = HTTPField.allCases.first { $0.rawValue == sides[0] }
            // A broken session ends at the login page, which is one input.
            if let field { head.fields[field] = String(sides.last ?? "") }
        }
        let body = Array(lines.joined(separator: [10]))
        if head.fields[.contentLength] == nil { head.fields[.contentLength] = "\(body.count)" }
        check(answer(head, body))
    }

    private func check(_ answer: HTTPAnswer) {
        let reason = String(decoding: answer.body.prefix(300), as: UTF8.self)
        precondition(answer.status < 500 || answer.status == 503, "\(answer.status): \(reason)")
        precondition(
            answer.headers.allSatisfy { !$0.value.utf8.contains { $0 < 32 } },
            "a line end in a header"
        )
        let type = answer.headers.first { $0.name == "Content-Type" }?.value ?? ""
        guard type.hasPrefix("application/json"), !answer.body.isEmpty else { return }
        precondition(
            (try? JSONSerialization.jsonObject(with: Data(answer.body))) != nil,
            "no JSON: \(reason)"
        )
    }

    private static func decoded(_ text: some StringProtocol) -> String {
        text.removingPercentEncoding ?? String(text)
    }
}
