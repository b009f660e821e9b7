// `waypost-receiver serve`: runs the server until a signal stops it.
import ArgumentParser
import Foundation
import Glibc
import Host
import ServerArchive
import ServerBase
import ServerExports
import ServerIndex
import ServerPages
import ServerWeb
import ServerWiring

struct Serve: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Receive until SIGTERM or SIGINT.",
        discussion: """
            Files: DIR/stream=NAME/date=YYYY-MM-DD/device=ID/records.ndjson; audio: DIR/audio/NAME/YYYY-MM-DD/ID. DuckDB \
            reads records with read_json_auto('DIR/stream=NAME/**/*.ndjson', hive_partitioning=1).
            """
    )

    @Option(
        help: ArgumentHelp(
            "A configuration file; options on the command line win over its keys.",
            discussion: "Without it no file is read.",
            valueName: "file"
        )
    )
    var config: String?
    @Option(help: "Address and port; port 0 chooses one.") var listen = "127.0.0.1:8080"
    @Option(
        help: "Where records are stored: a folder, or s3://BUCKET/PREFIX (no local state then)."
    )
    var data = "./waypost-data"
    @OptionGroup(title: "Options of a bucket") var bucket: BucketOptions
    @Option(help: "A file of device tokens, one per line; without it and codes any is accepted.")
    var tokens: String?
    @Flag(
        inversion: .prefixedNo,
        help: "Accept any token until there is a list or a code (default: only without --config)."
    )
    var acceptAnyToken: Bool?
    @Option(help: "Largest body on the wire; units kB, MB, GB, KiB, MiB, GiB.")
    var maxBody = ByteSize(bytes: 16 << 20)
    @Option(help: "Limit for one device per day (UTC), units as --max-body; default 100GB.")
    var maxPerDay: ByteSize?
    @Flag(
        inversion: .prefixedNo,
        help: ArgumentHelp(
            "All connections come from a proxy: count clients by its X-Forwarded-For.",
            discussion: "The limit of connections per address counts requests per client then."
        )
    )
    var behindProxy = false
    @Option(help: "A program that is run for each device that is late, back, losing or critical.")
    var alertCommand: String?
    @Option(
        name: .customLong("alert-url"),
        help: "A URL that gets the same as JSON, by POST."
    )
    var alertURL: String?
    @Option(
        help: ArgumentHelp(
            "An InfluxDB that gets readings, fixes and streams of your own.",
            discussion: "http://HOST:8086/write?db=NAME or …/api/v2/write?org=NAME&bucket=NAME.",
            valueName: "url"
        )
    )
    var influx: String?
    @Option(
        help: ArgumentHelp(
            "A file with USER:PASSWORD, or a token for version 2.",
            discussion: "Without it the environment's \(InfluxTarget.variable).",
            valueName: "file"
        )
    )
    var influxTokenFile: String?
    @Option(
        help: ArgumentHelp(
            "Delete days older than this once per day: 90d for all streams, STREAM=30d for one.",
            valueName: "days"
        )
    )
    var retain: [RetainedStream] = []
    @Option(
        help: ArgumentHelp(
            "Serve metrics for Prometheus at /metrics of a loopback address, such as 127.0.0.1:9101.",
            valueName: "address:port"
        )
    )
    var metrics: String?
    @Option(
        name: .customLong("tiles-url"),
        help: ArgumentHelp(
            "Map tiles that browsers load for the page's maps; none without it.",
            discussion: "https://HOST/{z}/{x}/{y}.png",
            valueName: "url"
        )
    )
    var tilesURL: String?
    @Option(
        help: ArgumentHelp(
            "Let uploads go wrong in ways that this number draws, so that a client can be tried.",
            discussion: "Requests and answers are lost, refused and cut; never for real data.",
            valueName: "seed"
        )
    )
    var torment: UInt64?
    @Flag(inversion: .prefixedNo, help: "Do not log each batch.") var quiet = false
    @Flag(help: "Print what the directory holds, and exit.") var summary = false
    @Flag(help: "With --summary: print one JSON object.") var json = false

    mutating func validate() throws {
        guard ListenAddress(listen) != nil else {
            throw ValidationError(
                "--listen takes IPV4-ADDRESS:PORT, such as 127.0.0.1:8080; not \(listen)"
            )
        }
        try bucket.check(data)
        let needsFolder =
            summary || maxPerDay != nil || alertCommand ?? alertURL ?? influx != nil
            || metrics ?? tilesURL != nil || !retain.isEmpty
        guard !BucketOptions.isBucket(data) || !needsFolder else {
            throw ValidationError(
                "--alert-command, --alert-url, --influx, --max-per-day, --metrics, --retain, "
                    + "--summary and --tiles-url need a folder; "
                    + "--data s3://… has no local state"
            )
        }
        guard maxBody.bytes <= 1 << 30 else {
            throw ValidationError("--max-body takes 1GiB at most")
        }
        if let program = alertCommand, !canRun(program) {
            throw ValidationError(
                "--alert-command takes the path of a program, without arguments; not \(program)"
            )
        }
        if let address = alertURL, !isWeb(address) {
            throw ValidationError("--alert-url takes http://… or https://…; not \(address)")
        }
        if let tilesURL, TilesURL(tilesURL) == nil {
            throw ValidationError("--tiles-url takes \(TilesURL.expected); not \(tilesURL)")
        }
        if let metrics, ListenAddress(metrics)?.isLoopback != true {
            throw ValidationError(
                "--metrics takes a loopback address and a port, such as 127.0.0.1:9101, because it asks "
                    + "for no token; not \(metrics)"
            )
        }
        do {
            _ = try influxTarget()
        } catch {
            throw ValidationError("--influx takes \(error)")
        }
    }

    private func influxTarget() throws -> InfluxTarget? {
        try influx.map { try InfluxTarget(url: $0, tokenFile: influxTokenFile) }
    }

    private var alerts: AlertSettings {
        var settings = AlertSettings()
        settings.command = alertCommand
        settings.url = alertURL
        settings.userAgent = "waypost-receiver/\(currentVersion)"
        return settings
    }

    func run() throws {
        if summary {
            try DataLocation.expectThere(data)
            return print(try Summary(directory: data).text(json: json))
        }
        // Threads run until the end: exit(3) would clean up libcrypto while they use it.
        _exit(status())
    }

    /// Serves; returns the exit status.
    private func status() -> Int32 {
        do {
            try serve()
            return 0
        } catch {
            complain("\(error)")
            return error is StartError ? 78 : 1
        }
    }

    private func serve() throws {
        guard let address = ListenAddress(listen) else { return }
        // Before any thread starts, so that all inherit the blocked signals.
        let signals = StopSignals()
        Heap.share()
        let isFolder = !BucketOptions.isBucket(data)
        if isFolder { try DataOwner.expectSelf(data) }
        let list = try TokenList(
            file: tokens,
            folder: isFolder ? data : nil,
            acceptsAny: acceptAnyToken ?? (config == nil)
        )
        if let note = list.note { complain(note) }
        let application = try application(list)
        let socket = try address.listen("listen")
        var bounds = HTTPBounds()
        bounds.isBehindProxy = behindProxy
        let daemon = try HTTPDaemon(
            listener: socket,
            bounds: bounds,
            application: torment.map { TormentedServer(application, seed: $0) } ?? application
        )
        let metrics = try metricsListener(application)
        try application.begin()
        announce(try address.text(of: socket), isOpen: application.isOpen())
        signals.wait()
        // Even if the disk hangs: answered batches are stored, and gateways resend the others.
        try? exitAfter(seconds: 4)
        metrics?.windDown()
        application.windDown()
        daemon.windDown()
        application.finish()
    }

    private func metricsListener(_ application: any ReceiverApplication) throws -> MetricsListener?
    {
        guard let metrics, let address = ListenAddress(metrics),
            let server = application as? IngestServer
        else { return nil }
        return try MetricsListener(socket: try address.listen("metrics"), metrics: server.metrics)
    }

    private func application(_ list: TokenList) throws -> any ReceiverApplication {
        let log = ServerLog(isQuiet: quiet)
        if let place = try bucket.place(data) {
            return try BucketServer(
                place,
                // Not /tmp, which may be in memory.
                spoolFolder: ProcessInfo.processInfo.environment["TMPDIR"] ?? "/var/tmp",
                tokens: list,
                maxBody: maxBody.bytes,
                version: currentVersion,
                log: log
            )
        }
        return try IngestServer(
            directory: data,
            tokens: list,
            maxBody: maxBody.bytes,
            version: currentVersion,
            maxPerDay: Int64(maxPerDay?.bytes ?? 100_000_000_000),
            alerts: alerts,
            influx: try influxTarget(),
            retention: Retention(retain),
            tiles: tilesURL.flatMap { TilesURL($0) },
            log: log
        )
    }

    private func announce(_ place: String, isOpen: Bool) {
        let path = BucketOptions.isBucket(data) ? data : URL(fileURLWithPath: data).path
        FileHandle.standardOutput.write(
            Data("waypost-receiver listening on http://\(place), data in \(path)\n".utf8)
        )
        if isOpen { complain("no --tokens: any device token is accepted; for a try only") }
    }
}
