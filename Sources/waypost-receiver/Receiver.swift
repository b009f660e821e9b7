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
        discussion:
            "Without a subcommand it serves; `waypost-receiver serve --help` has the options of that.",
        version: currentVersion,
        subcommands: [Serve.self, Codes.self],
        // Its options may follow the program's name.
        defaultSubcommand: Serve.self
    )
}

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Receive until SIGTERM or SIGINT.",
        discussion: """
            Files: DIR/stream=NAME/date=YYYY-MM-DD/device=ID/records.ndjson, sound beside it. DuckDB reads \
            them with read_json_auto('DIR/stream=NAME/**/*.ndjson', hive_partitioning=1).
            """
    )

    @Option(help: "Address and port; port 0 chooses one.") var listen = "127.0.0.1:8080"
    @Option(help: "Where the files go.") var data = "./waypost-data"
    @Option(help: "A file of device tokens, one a line; without it and without codes any is taken.")
    var tokens: String?
    @Option(help: "Largest body on the wire; units kB, MB, GB, KiB, MiB, GiB.")
    var maxBody = ByteSize(bytes: 16 << 20)
    @Flag(help: "No line a batch.") var quiet = false
    @Flag(help: "Print what the directory holds, and end.") var summary = false
    @Flag(help: "With --summary: one JSON object.") var json = false

    mutating func validate() throws {
        if address == nil {
            throw ValidationError(
                "--listen takes IPV4-ADDRESS:PORT, such as 127.0.0.1:8080; not \(listen)"
            )
        }
    }

    private var address: (host: String, port: UInt16)? {
        guard let colon = listen.lastIndex(of: ":"),
            let port = UInt16(listen[listen.index(after: colon)...])
        else { return nil }
        let host = listen[..<colon] == "localhost" ? "127.0.0.1" : String(listen[..<colon])
        var binary = in_addr()
        return inet_pton(AF_INET, host, &binary) == 1 ? (host, port) : nil
    }

    mutating func run() async throws {
        guard !summary else { return print(try Summary(directory: data).text(json: json)) }
        do {
            try await serve()
        } catch let failure as StartFailure {
            Self.complain("\(failure)")
            throw ExitCode(78)
        } catch SocketError.failed(_, _, let reason) {
            Self.complain("cannot listen on \(listen): \(reason)")
            throw ExitCode(1)
        } catch {
            Self.complain("\(error)")
            throw ExitCode(1)
        }
    }

    private static func complain(_ text: String) {
        FileHandle.standardError.write(Data("waypost-receiver: \(text)\n".utf8))
    }

    private func serve() async throws {
        guard let address else { return }
        let archive = try Archive(directory: data)
        let enrolments = try Enrolments(directory: data)
        let ingest = IngestServer(
            archive: archive,
            tokens: try TokenList(file: tokens),
            enrolments: enrolments,
            enrolRoute: EnrolRoute(enrolments),
            maxBody: maxBody.bytes,
            isQuiet: quiet
        )
        // Field uploads are slow: 16 MiB at 5 kB/s take an hour. Without a replay size each body is read
        // once and in order, which RequestBody relies on.
        let server = HTTPServer(
            config: HTTPServer.Configuration(
                address: try .inet(
                    ip4: address.host,
                    port: address.port
                ),
                timeout: 3600,
                sharedRequestReplaySize: 0,
                logger: .disabled
            )
        )
        await ingest.routes(on: server)
        let isStopping = StopFlag()
        let signals = stopOnSignals(server, isStopping)
        defer { signals.forEach { $0.cancel() } }
        let isInUse = try await enrolments.isInUse()
        let hasTokens = tokens != nil || isInUse
        let announcing = Task { [data] in
            try await server.waitUntilListening()
            await Self.announce(server, data: data, hasTokens: hasTokens)
        }
        defer { announcing.cancel() }
        do {
            try await server.run()
        } catch is CancellationError {
        } catch  where isStopping.isSet {
        }
    }

    private static func announce(_ server: HTTPServer, data: String, hasTokens: Bool) async {
        var place = ""
        if case .ip4(let host, port: let port)? = await server.listeningAddress {
            place = "\(host):\(port)"
        }
        let path = URL(fileURLWithPath: data).path
        FileHandle.standardOutput.write(
            Data("waypost-receiver listening on http://\(place), data in \(path)\n".utf8)
        )
        if !hasTokens {
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
