// `waypost-receiver`: a reference ingest server.
import ArgumentParser
import FlyingFox
import FlyingSocks
import Foundation
import Glibc

@main
struct Receiver: AsyncParsableCommand {
    static let currentVersion = "0.1.0"

    static let configuration = CommandConfiguration(
        commandName: "waypost-receiver",
        abstract: "Receive batches from gateways and keep each record once, as files.",
        discussion: """
            Files: DIR/stream=NAME/date=YYYY-MM-DD/device=ID/records.ndjson, sound beside it. DuckDB reads \
            them with read_json_auto('DIR/stream=NAME/**/*.ndjson', hive_partitioning=1).
            """,
        version: currentVersion
    )

    @Option(help: "Address and port; port 0 chooses one.") var listen = "127.0.0.1:8080"
    @Option(help: "Where the files go.") var data = "./waypost-data"
    @Option(help: "A file of device tokens, one a line; without it any token is taken.")
    var tokens: String?
    @Option(help: "Largest body on the wire, in bytes.") var maxBody = 16 << 20
    @Flag(help: "No line a batch.") var quiet = false
    @Flag(help: "Print what the directory holds, and end.") var summary = false
    @Flag(help: "With --summary: one JSON object.") var json = false

    mutating func validate() throws {
        if address == nil {
            throw ValidationError(
                "--listen takes ADDRESS:PORT, such as 127.0.0.1:8080; not \(listen)"
            )
        }
    }

    private var address: (host: String, port: UInt16)? {
        guard let colon = listen.lastIndex(of: ":"),
            let port = UInt16(listen[listen.index(after: colon)...])
        else { return nil }
        return (String(listen[..<colon]), port)
    }

    mutating func run() async throws {
        guard !summary else { return print(try Summary(directory: data).text(json: json)) }
        do {
            try await serve()
        } catch {
            FileHandle.standardError.write(Data("waypost-receiver: \(error)\n".utf8))
            throw ExitCode(1)
        }
    }

    private func serve() async throws {
        guard let address else { return }
        let ingest = IngestServer(
            archive: try Archive(directory: data),
            tokens: try TokenList(file: tokens),
            maxBody: maxBody,
            isQuiet: quiet
        )
        // Field uploads are slow: 16 MiB at 5 kB/s take an hour. Without a replay size each body is read
        // once and in order, which RequestBody relies on.
        let server = HTTPServer(
            config: HTTPServer.Configuration(
                address: try .inet(
                    ip4: address.host == "localhost" ? "127.0.0.1" : address.host,
                    port: address.port
                ),
                timeout: 3600,
                sharedRequestReplaySize: 0
            )
        )
        await ingest.routes(on: server)
        let isStopping = StopFlag()
        let signals = stopOnSignals(server, isStopping)
        defer { signals.forEach { $0.cancel() } }
        let running = Task { try await server.run() }
        do {
            try await server.waitUntilListening()
        } catch {
            // The reason is in what `run` throws: the port is taken, most often.
            try await running.value
        }
        await announce(server)
        do {
            try await running.value
        } catch is CancellationError {
        } catch  where isStopping.isSet {
        }
    }

    private func announce(_ server: HTTPServer) async {
        var place = listen
        if case .ip4(let host, port: let port)? = await server.listeningAddress {
            place = "\(host):\(port)"
        }
        let path = URL(fileURLWithPath: data).path
        FileHandle.standardOutput.write(
            Data("waypost-receiver listening on http://\(place), data in \(path)\n".utf8)
        )
        if tokens == nil {
            FileHandle.standardError.write(Data("no --tokens: any device token is taken\n".utf8))
        }
    }

    /// SIGTERM and SIGINT end the requests under way, then the server.
    private func stopOnSignals(
        _ server: HTTPServer,
        _ flag: StopFlag
    ) -> [any DispatchSourceSignal] {
        signal(SIGPIPE, SIG_IGN)
        return [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { @Sendable in
                flag.set()
                Task { await server.stop(timeout: 5) }
            }
            source.resume()
            return source
        }
    }
}
