// The routes of the receiver (contract, sections 3 and 7).
import FlyingFox
import FlyingSocks
import Foundation

/// Answers ingest requests.
struct IngestServer: Sendable {
    let archive: Archive
    let tokens: TokenList
    let enrolments: Enrolments
    let enrolRoute: EnrolRoute
    /// Bytes of a body on the wire.
    let maxBody: Int
    let isQuiet: Bool

    func routes(on server: HTTPServer) async {
        await server.appendRoute("/api/ingest") { await answer($0, "POST", ingest) }
        await server.appendRoute("/api/device/verify") { await answer($0, "POST", verify) }
        await server.appendRoute("/api/device/enroll") { await answer($0, "POST", enrol) }
        await server.appendRoute("/healthz") { await answer($0, "GET", health) }
        await server.appendRoute("*") { request in
            let refusal = Refusal(status: 404, reason: "no such path; POST /api/ingest")
            return Self.answer(refusal, RequestBody(request))
        }
    }

    private func answer(
        _ request: HTTPRequest,
        _ method: String,
        _ handle: (HTTPRequest, RequestBody) async throws -> HTTPResponse
    ) async -> HTTPResponse {
        let body = RequestBody(request)
        guard request.method.rawValue == method else {
            var response = Self.answer(Refusal(status: 405, reason: "use \(method)"), body)
            response.headers[HTTPHeader("Allow")] = method
            return response
        }
        do {
            return try await handle(request, body)
        } catch let refusal as Refusal {
            log("refused \(refusal.status): \(refusal.reason)")
            return Self.answer(refusal, body)
        } catch {
            log("error: \(error)")
            return Self.answer(Refusal(status: 500, reason: "\(error)"), body)
        }
    }

    /// A refusal; what the client is still sending is read and dropped.
    private static func answer(_ refusal: Refusal, _ body: RequestBody) -> HTTPResponse {
        var response = json(refusal.status, ["error": refusal.reason])
        response.headers[HTTPHeader("Accept-Encoding")] = refusal.acceptEncoding
        response.headers[HTTPHeader("Retry-After")] = refusal.retryAfter.map { "\($0)" }
        let text = text(["error": refusal.reason])
        response.payload = .httpBody(
            HTTPBodySequence(from: EarlyAnswer(text: text, rest: body), count: text.count)
        )
        return response
    }

    /// The device that the request's token is bound to, "" for any.
    private func authorize(_ request: HTTPRequest) async throws -> String {
        let token = request.headers[HTTPHeader("X-Device-Token")] ?? ""
        if let device = await enrolments.device(of: token) { return device }
        // Where devices enrol, a server without a list is open no more.
        if tokens.isOpen, !token.isEmpty, try await !enrolments.isInUse() { return "" }
        guard let device = tokens.device(of: token) else {
            throw Refusal(status: 401, reason: "X-Device-Token is missing or not known")
        }
        return device
    }

    private func enrol(_ request: HTTPRequest, _ body: RequestBody) async throws -> HTTPResponse {
        let bytes = try await read(body, of: request, limit: 4096)
        let address =
            switch request.remoteAddress {
            case .ip4(let host, _), .ip6(let host, _): host
            case .unix, nil: ""
            }
        let (token, device) = try await enrolRoute.exchange(bytes, from: address)
        log("\(device) has enrolled")
        return Self.json(200, ["token": token, "device_id": device])
    }

    private func verify(_ request: HTTPRequest, _ body: RequestBody) async throws -> HTTPResponse {
        let device = try await authorize(request)
        return Self.json(200, device.isEmpty ? ["ok": true] : ["ok": true, "device_id": device])
    }

    private func health(_ request: HTTPRequest, _ body: RequestBody) async throws -> HTTPResponse {
        let counts = try await archive.counts()
        return Self.json(
            200,
            [
                "ok": true, "version": Receiver.currentVersion, "records": counts.records,
                "batches": counts.batches,
            ]
        )
    }

    private func ingest(_ request: HTTPRequest, _ body: RequestBody) async throws -> HTTPResponse {
        let started = Date()
        let device = try await authorize(request)
        let key = try key(request)
        let type = request.headers[.contentType] ?? ""
        guard type.lowercased().hasPrefix("application/json") else {
            throw Refusal(status: 415, reason: "Content-Type must be application/json")
        }
        let wire = try await read(body, of: request, limit: maxBody)
        let plain = try Inflater.inflate(
            wire,
            encoding: request.headers[HTTPHeader("Content-Encoding")] ?? ""
        )
        let batch = try IncomingBatch(key: key, body: plain)
        guard device.isEmpty || device == batch.device else {
            throw Refusal(status: 403, reason: "the token belongs to another device_id")
        }
        let receipt = try await archive.store(batch)
        let milliseconds = Int(Date().timeIntervalSince(started) * 1000)
        log(
            "\(batch.device) \(batch.stream): \(receipt.accepted) records, \(receipt.duplicates) duplicates, \(wire.count) bytes, \(milliseconds) ms"
        )
        return Self.json(
            200,
            [
                "accepted": receipt.accepted, "duplicates": receipt.duplicates, "rejected": 0,
                "batch_id": key,
            ]
        )
    }

    /// A structured-field string (RFC 8941, section 3.3.3): quoted, plain characters only.
    private func key(_ request: HTTPRequest) throws -> String {
        let text = request.headers[HTTPHeader("Idempotency-Key")] ?? ""
        let key = String(text.dropFirst().dropLast())
        guard text.count > 2, text.hasPrefix("\""), text.hasSuffix("\""), IncomingBatch.isName(key)
        else {
            throw Refusal(status: 400, reason: "Idempotency-Key is missing or not a quoted key")
        }
        return key
    }

    private func read(
        _ body: RequestBody,
        of request: HTTPRequest,
        limit: Int
    ) async throws -> [UInt8] {
        let tooLarge = Refusal(status: 413, reason: "the body is larger than \(limit) bytes")
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw tooLarge
        }
        var bytes: [UInt8] = []
        while let part = try await next(of: body) {
            bytes += part
            guard bytes.count <= limit else { throw tooLarge }
        }
        return bytes
    }

    /// A body that ends early or is badly framed is the client's fault.
    private func next(of body: RequestBody) async throws -> Data? {
        do {
            return try await body.next()
        } catch {
            throw Refusal(status: 400, reason: "the body could not be read to its end")
        }
    }

    private static func json(_ status: Int, _ object: [String: Any]) -> HTTPResponse {
        HTTPResponse(
            statusCode: HTTPStatusCode(status, phrase: ""),
            headers: [.contentType: "application/json"],
            body: text(object)
        )
    }

    private static func text(_ object: [String: Any]) -> Data {
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        let data = try? JSONSerialization.data(withJSONObject: object, options: options)
        return (data ?? Data()) + Data("\n".utf8)
    }

    private func log(_ line: String) {
        guard !isQuiet else { return }
        let time = Date().formatted(.iso8601)
        FileHandle.standardError.write(Data("\(time) \(line)\n".utf8))
    }
}
