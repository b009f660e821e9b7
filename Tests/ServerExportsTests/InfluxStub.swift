// A stub of InfluxDB that misbehaves on demand.
import Foundation
import Support

/// A server that takes its behaviour from a file: one word per request, the last for all that
/// follow.
///
/// It writes accepted points to `points`, one per line, and all requests to `requests`.
struct InfluxStub {
    private static let script = """
        import os, socket, struct, sys
        folder = sys.argv[1]
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        held, words, number = [], None, 0
        def note(name, data):
            with open(folder + "/" + name, "ab") as file:
                file.write(data)
        def keep(lines):
            note("points", b"".join(line + b"\\n" for line in lines))
        def refused(status, text):
            return b"HTTP/1.1 %d No\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (status, len(text), text)
        def answer(word, lines):
            bad = [line for line in lines if b"bad" in line]
            if word == "partial" and bad:
                keep(line for line in lines if line not in bad)
                return refused(400, b'{"error":"partial write: field type conflict dropped=%d"}' % len(bad))
            if word == "whole" and bad:
                return refused(400, b'{"code":"invalid","message":"unable to parse \\'bad\\'"}')
            if word == "odd" and bad:
                return refused(422, b"no")
            if word == "expired":
                return refused(400, b'{"error":"partial write: points beyond retention policy dropped=%d"}' % len(lines))
            if word == "small" and len(lines) > 3:
                return refused(413, b"too large")
            if word.isdigit():
                return refused(int(word), b"go away")
            if word == "garbage":
                return b"\\0\\0\\0garbage\\r\\n\\r\\n"
            if word == "page":
                return b"HTTP/1.1 200 OK\\r\\nContent-Length: 19\\r\\n\\r\\n<html>log in</html>"
            if word == "moved":
                return b"HTTP/1.1 302 Found\\r\\nLocation: /other\\r\\nContent-Length: 0\\r\\n\\r\\n"
            keep(lines)
            half = b"HTTP/1.1 204 OK\\r\\nContent-Length: 1000000\\r\\n\\r\\nshort"
            return b"" if word == "cut" else half if word == "half" else b"HTTP/1.1 204 OK\\r\\n\\r\\n"
        while True:
            client, _ = listener.accept()
            said = open(folder + "/does").read().split()
            words, number = said, number if said == words else 0
            word, number = words[min(number, len(words) - 1)], number + 1
            if word == "refuse":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                note("requests", b"refuse\\n")
                continue
            stream = client.makefile("rb")
            try:
                first, length, token = stream.readline().decode(), 0, ""
                while (line := stream.readline().strip()) != b"":
                    name, _, value = line.decode().partition(": ")
                    length = int(value) if name.lower() == "content-length" else length
                    token = value if name.lower() == "authorization" else token
                body = stream.read(length)
            except OSError:
                first = ""
            # The client was killed before it had asked.
            if not first:
                client.close()
                continue
            lines = body.split(b"\\n")
            note("requests", f"{word} {first.split(' ')[1]} {len(lines)} {token}\\n".encode())
            if word == "hang" or len(body) < length:
                held.append((client, stream))
                continue
            try:
                client.sendall(answer(word, lines))
            except OSError:
                pass
            stream.close()
            client.close()
        """

    let folder = TemporaryFolder()
    private let server: StubServer

    init(_ words: String) throws {
        try folder.write(words, to: "does")
        server = try StubServer(Self.script, folder.path)
    }

    var url: String { "http://127.0.0.1:\(server.port)/write?db=w" }

    var url2: String { "http://127.0.0.1:\(server.port)/api/v2/write?org=o&bucket=b" }

    /// Sets the behaviour from now on.
    func does(_ words: String) throws { try folder.write(words, to: "does") }

    private func lines(_ name: String) -> [String] {
        ((try? folder.read(name)) ?? "").split(separator: "\n").map(String.init)
    }

    /// Each line as often as it was stored.
    var points: [String] { lines("points") }

    var requests: [String] { lines("requests") }

    func stop() { server.stop() }

    /// Returns the fields of each point, by measurement, tags and time.
    ///
    /// Throws if two different records became one point.
    func stored() throws -> [String: String] {
        var stored: [String: String] = [:]
        for line in points {
            let parts = line.split(separator: " ")
            let key = "\(parts[0]) \(parts[parts.count - 1])"
            let fields = parts[1..<parts.count - 1].joined(separator: " ")
            guard stored.updateValue(fields, forKey: key) ?? fields == fields else {
                throw NeverHappened(what: "one point a record: \(line)")
            }
        }
        return stored
    }
}
