// Programs that tests start: those of this package, and others.
package import Foundation
internal import Host

/// The output and status of a program that has ended.
package struct Outcome: Sendable {
    package var status: Int32
    package var data: Data
    package var error: String

    package var output: String { String(decoding: data, as: UTF8.self) }
}

extension Process {
    /// Starts a program; `environment` is added to that of the tests.
    package static func started(
        _ program: String,
        _ arguments: [String],
        input: Any? = nil,
        output: Any = FileHandle.nullDevice,
        error: Any = FileHandle.nullDevice,
        environment: [String: String] = [:]
    ) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        if let input { process.standardInput = input }
        process.standardOutput = output
        process.standardError = error
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        // The test's thread blocks signals, and a program that inherits that ignores SIGTERM.
        var (none, blocked) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &blocked)
        defer { pthread_sigmask(SIG_SETMASK, &blocked, nil) }
        try process.run()
        return process
    }

    /// Runs a program to its end.
    package static func run(
        _ program: String,
        _ arguments: [String],
        input text: String = "",
        environment: [String: String] = [:]
    ) throws -> Outcome {
        let (input, output, error) = (Pipe(), Pipe(), Pipe())
        let process = try started(
            program,
            arguments,
            input: input,
            output: output,
            error: error,
            environment: environment
        )
        // A program that has ended does not read the rest, and its status says why.
        try? input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try input.fileHandleForWriting.close()
        // Read on another thread: a full pipe would block the program.
        let (reported, errors) = (Locked(Data()), error.fileHandleForReading)
        let reader = try OwnThread("stderr") {
            let all = errors.readDataToEndOfFile()
            reported.update { $0 = all }
        }
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        reader.join()
        return Outcome(
            status: process.terminationStatus,
            data: data,
            error: String(decoding: reported.value, as: UTF8.self)
        )
    }

    /// Kills the program, as a power cut would, if it still runs.
    package func killAndWait() {
        if isRunning { kill(processIdentifier, SIGKILL) }
        waitUntilExit()
    }
}

extension Tree {
    /// Returns the path of a program of this package: in the folder WAYPOST_TEST_PROGRAMS if it is
    /// there, otherwise as built beside the tests.
    package static func program(_ name: String) -> String {
        if let folder = ProcessInfo.processInfo.environment["WAYPOST_TEST_PROGRAMS"] {
            let installed = "\(folder)/\(name)"
            if FileManager.default.isExecutableFile(atPath: installed) { return installed }
        }
        return URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent(name).path
    }
}

extension Tree {
    /// Returns the path of another project's program: on the PATH, in /usr/sbin, or unpacked by
    /// `deploy/test`; its bare name if it is in none of them.
    package static func tool(_ name: String) -> String {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", servers]
        let places = folders.map { "\($0)/\(name)" }
        return places.first { FileManager.default.isExecutableFile(atPath: $0) } ?? name
    }

    /// True if `tool` finds the program.
    package static func hasTool(_ name: String) -> Bool {
        name.hasPrefix("/")
            ? FileManager.default.isExecutableFile(atPath: name) : tool(name) != name
    }

    /// The Python of `deploy/test`, with packages that only tests need.
    package static var python: String {
        ProcessInfo.processInfo.environment["WAYPOST_TEST_PYTHON"]
            ?? path(".build/tools/bin/python3")
    }

    /// The programs that `deploy/test` unpacks instead of installing them.
    private static let servers = path(".build/servers/bin")
}

/// A server in Python that prints its port in its first line.
package final class StubServer {
    package let port: String
    private let process: Process

    /// Starts a script with one argument.
    package init(_ script: String, _ argument: String) throws {
        let output = Pipe()
        process = try .started("/usr/bin/python3", ["-c", script, argument], output: output)
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        port = line.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Stops the server; called at the end of the test, which keeps a reference until then.
    ///
    /// By SIGKILL: under emulation a server survived SIGTERM and kept the pipe of another test
    /// open.
    package func stop() { process.killAndWait() }
}

extension StubServer {
    /// Returns a script that answers POST with the Python function `answer`.
    ///
    /// It maps the path and the earlier paths to status and body.
    package static func posts(_ answer: String) -> String {
        answer + """

            import http.server, sys
            asked = []
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def do_POST(self):
                    self.rfile.read(int(self.headers["Content-Length"]))
                    status, body = answer(self.path, asked)
                    asked.append(self.path)
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                def log_message(self, *words): pass
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            print(server.server_port, flush=True)
            server.serve_forever()
            """
    }
}
