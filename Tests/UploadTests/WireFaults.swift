// Connection faults, and unusual answers that are valid.
import Foundation
import Testing

/// A fault on an established connection.
struct WireFault: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var code: String
    /// Only the gateway's own timeout ends it.
    var isSlow: Bool
    var behaviour: Behaviour

    init(
        _ name: String,
        code: String = "E001",
        isSlow: Bool = false,
        _ act: @escaping @Sendable (Int32) -> Void
    ) {
        (testDescription, self.code, self.isSlow, behaviour) = (name, code, isSlow, .play(act))
    }

    static let all: [WireFault] = [
        .init("hangs up") { _ in },
        .init("reset before the answer") { Wire.resetAtClose($0) },
        .init("reset in the header") {
            Wire.send($0, "HTTP/1.1 200 OK\r\nContent-Le")
            Wire.resetAtClose($0)
        },
        .init("reset in the body") {
            Wire.send($0, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"acc")
            Wire.resetAtClose($0)
        },
        .init("cut behind the status line") { Wire.send($0, "HTTP/1.1 200 OK\r\n") },
        .init("cut behind 100 Continue") {
            Wire.send($0, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
        },
        .init("cut in the header") { Wire.send($0, "HTTP/1.1 200 OK\r\nContent-Le") },
        .init("cut in the body") {
            Wire.send($0, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"acc")
        },
        .init("cut in a chunk") {
            Wire.send($0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"a")
        },
        .init("chunked without an end") {
            Wire.send($0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        },
        .init("chunk of nonsense") {
            Wire.send($0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}")
        },
        .init("cut in megabytes of ids") {
            Wire.send(
                $0,
                "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + OddAnswer.ids(3 << 20)
            )
        },
        .init("HTTP/1.0 cut in megabytes of ids", code: "E003") {
            Wire.send($0, "HTTP/1.0 200 OK\r\n\r\n" + OddAnswer.ids(3 << 20))
        },
        .init("megabytes of HTML", code: "E003") { client in
            Wire.send(client, "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n<html>")
            while Wire.send(client, String(repeating: "a", count: 0x4000)) {}
        },
        .init("HTTP/1.0 cut in the body", code: "E003") {
            Wire.send($0, "HTTP/1.0 200 OK\r\n\r\n{\"acc")
        },
        .init("not HTTP at all") { Wire.send($0, "SSH-2.0-OpenSSH_9.2p1\r\n") },
        .init("random bytes") { client in
            let bytes = (0..<5000).map { _ in UInt8.random(in: 0...255) }
            Wire.send(client, bytes)
        },
        .init("answer without end", code: "E003") { client in
            Wire.send(client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let block = "4000\r\n" + String(repeating: " ", count: 0x4000) + "\r\n"
            while Wire.send(client, block) {}
        },
        .init("answer that says it is huge", code: "E003") { client in
            Wire.send(client, "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
            while Wire.send(client, String(repeating: "{", count: 0x4000)) {}
        },
        .init("header without end", code: "E003") { client in
            Wire.send(client, "HTTP/1.1 200 OK\r\n")
            while Wire.send(client, "X-Bomb: \(String(repeating: "b", count: 1000))\r\n") {}
        },
        .init("header line without end", code: "E001") { client in
            Wire.send(client, "HTTP/1.1 200 OK\r\nX-Bomb: ")
            while Wire.send(client, String(repeating: "b", count: 0x4000)) {}
        },
        .init("100 Continue without end", code: "E003") { client in
            while Wire.send(client, "HTTP/1.1 100 Continue\r\n\r\n") {}
        },
        .init("stall before the answer", isSlow: true) { Wire.waitForEnd($0) },
        .init("stall in the header", isSlow: true) {
            Wire.send($0, "HTTP/1.1 200 OK\r\n")
            Wire.waitForEnd($0)
        },
        .init("stall in the body", isSlow: true) {
            Wire.send($0, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            Wire.waitForEnd($0)
        },
        .init("a byte now and then", isSlow: true) {
            Wire.drip($0, "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{", every: 50_000)
        },
        .init("a byte of the header now and then", isSlow: true) {
            Wire.drip($0, "HTTP/1.1 200 OK\r\nX-Slow: ", every: 50_000)
        },
    ]
}

/// An unusual but valid answer.
struct OddAnswer: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var behaviour: Behaviour

    init(_ name: String, _ answer: String) {
        testDescription = name
        behaviour = .play { Wire.send($0, answer) }
    }

    /// Returns the beginning of an answer that echoes so many bytes of ids.
    static func ids(_ bytes: Int) -> String {
        let id = "\"0195e7a0-0000-8000-8000-000000000000\","
        return "{\"accepted\": 9, \"ids\": [" + String(repeating: id, count: bytes / id.utf8.count)
    }

    static let all: [OddAnswer] = [
        .init(
            "three megabytes of ids",
            "HTTP/1.0 200 OK\r\n\r\n" + ids(3 << 20) + "\"\"], \"rejected\": 0}"
        ),
        .init("HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n{\"accepted\":9}"),
        .init("HTTP/1.0 empty", "HTTP/1.0 200 OK\r\n\r\n"),
        .init("no length", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}"),
        .init(
            "chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
        ),
        .init(
            "chunked with a trailer",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n"
        ),
        .init(
            "100 Continue first",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        ),
        .init(
            "103 Early Hints first",
            "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        ),
        .init("204", "HTTP/1.1 204 No Content\r\n\r\n"),
        .init(
            "half a megabyte of JSON",
            "HTTP/1.1 200 OK\r\nContent-Length: 500011\r\n\r\n{\"ids\":\""
                + String(repeating: "x", count: 500_000) + "\" }"
        ),
    ]
}
