// The keys of waypost-receiver.toml: each is an option of `serve`.
import Configuration
import Foundation
import Host
import ServerPages

/// The configuration file's values; a key is the option of that name with `_` for `-`.
///
/// `ServeArguments` passes them to `serve` as options, so a new option needs a key here and nothing
/// else.
struct ReceiverSettings: Configurable {
    /// The file of the packaged service.
    static let path = "/etc/waypost-receiver/waypost-receiver.toml"

    var listen = "127.0.0.1:8080"
    var data = "/var/lib/waypost-receiver"
    var tokens: String?
    var acceptsAnyToken = false
    var isBehindProxy = false
    var maxBody = 16 << 20
    var maxPerDay: Int?
    var alertCommand: String?
    var alertURL: String?
    var influx: String?
    var influxTokenFile: String?
    var bucketURL: String?
    var region: String?
    var credentialsFile: String?
    var caFile: String?
    var allowsPlaintext = false
    var retained: [String] = []
    var metrics: String?
    var tilesURL: String?
    var isQuiet = false

    static let table = KeyTable<ReceiverSettings>()

    static var keys: [Key<Self>] {
        Key("listen", \.listen, .listen).says("Where to listen for HTTP, or for a proxy with TLS.")
        Key("data", \.data, .data).says("Where records are stored: a folder or a bucket.")
        Key("tokens", optional: \.tokens, .path(), example: "/etc/waypost-receiver/tokens")
            .says(
                "A file of device tokens, one per line, besides those that devices got for codes."
            )
        Key("accept_any_token", \.acceptsAnyToken, .boolean)
            .says("Accept any device until there is a code or a token list; for a try only.")
        Key("behind_proxy", \.isBehindProxy, .boolean)
            .says("All connections come from a proxy: count clients by its X-Forwarded-For.")
        Key("max_body", \.maxBody, .size(1024...1 << 30)).says("Largest body on the wire.")
        Key("max_per_day", optional: \.maxPerDay, .size(1...1 << 50), example: 100_000_000_000)
            .says("Most that one device may store per day (UTC); 100GB if it is not set.")
        Key("alert_command", optional: \.alertCommand, .program, example: "/usr/local/bin/alert")
            .says("A program that is run for each device that is late, back, losing or critical.")
        Key("alert_url", optional: \.alertURL, .web, example: "https://push.example.org/waypost")
            .says("A URL that gets the same as JSON, by POST.")
        Key("influx", optional: \.influx, .web, example: "http://localhost:8086/write?db=waypost")
            .says("An InfluxDB that gets readings, fixes and streams of your own.")
        Key("influx_token_file", optional: \.influxTokenFile, .path(), example: exampleToken)
            .says("A file with USER:PASSWORD, or a token for version 2.")
        Key("bucket_url", optional: \.bucketURL, .web, example: "https://s3.example.org/field-data")
            .says("With data = \"s3://…\": the bucket; AWS without it.")
        Key("region", optional: \.region, .name("region"), example: "eu-west-1")
            .says("With data = \"s3://…\": the bucket's region.")
        Key("credentials_file", optional: \.credentialsFile, .path(), example: exampleKeys)
            .says("With data = \"s3://…\": a file of mode 0600 with ID:SECRET or an AWS profile.")
        Key("ca_file", optional: \.caFile, .path(), example: "/etc/ssl/certs/site.pem")
            .says("With data = \"s3://…\": additional CAs to trust.")
        Key("allow_plaintext", \.allowsPlaintext, .boolean)
            .says("With data = \"s3://…\": allow http:// to other machines.")
        Key("retain", \.retained, .retained)
            .says("Delete days older than this once per day: for all streams, or for one.")
        Key("metrics", optional: \.metrics, .loopback, example: "127.0.0.1:9101")
            .says("Metrics for Prometheus, at /metrics of this address.")
        Key("tiles_url", optional: \.tilesURL, .tiles, example: exampleTiles)
            .says("Map tiles that browsers load for the page's maps; none if it is not set.")
        Key("quiet", \.isQuiet, .boolean).says("Do not log each batch.")
    }

    private static let exampleTiles = "https://tile.openstreetmap.org/{z}/{x}/{y}.png"
    private static let exampleToken = "/etc/waypost-receiver/influx-token"
    private static let exampleKeys = "/etc/waypost-receiver/s3"

    /// The file that `config default` prints.
    static var defaultText: String {
        """
        # Configuration of waypost-receiver. Each key is listed with its default; a key without one
        # is commented out. `waypost-receiver config check` lists every error at once;
        # `systemctl restart waypost-receiver` applies a change.

        """ + table.commented
    }

    /// Reads and checks a file; throws all its errors at once.
    static func load(_ path: String) throws(ConfigurationErrors) -> Loaded<Self> {
        let bytes: [UInt8]
        do {
            bytes = try SmallFile.read(path, limit: KeyTable<Self>.largestFile, wait: true).bytes
        } catch {
            let message =
                switch error.code {
                case ENOENT: "the file does not exist; `waypost-receiver config default` prints one"
                case EACCES: "this user may not read it; run the command with sudo"
                default: "cannot be read: \(error.reason)"
                }
            throw ConfigurationErrors([ConfigurationProblem(place: path, message: message)])
        }
        // Environment variables that begin with WAYPOST_ belong to the gateway.
        return try table.read(bytes, file: path, environment: [:]) { _ in nil }
    }
}

extension ValueFormat where Value == [String] {
    fileprivate static let retained = list(
        "an array of ages such as \"400d\", for one stream \"linux_alsa_audio=30d\"",
        problem: { text in
            RetainedStream(argument: text) == nil ? "\"\(printable(text))\" is not an age" : nil
        }
    )
}

extension ValueFormat where Value == String {
    fileprivate static let loopback = text(
        "a loopback address and a port, such as 127.0.0.1:9101",
        no: "loopback address"
    ) { ListenAddress($0)?.isLoopback == true }
    fileprivate static let tiles = text(TilesURL.expected, no: "address of map tiles") {
        TilesURL($0) != nil
    }
    fileprivate static let listen = text(
        "IPV4-ADDRESS:PORT, such as 127.0.0.1:8080",
        no: "address and port"
    ) { ListenAddress($0) != nil }
    fileprivate static let data = text(
        "an absolute path, or s3://BUCKET/PREFIX",
        no: "folder or bucket"
    ) { text in
        let isPrintable = text.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
        return isPrintable && (text.hasPrefix("/") || BucketOptions.isBucket(text))
    }
    /// A URL, which may contain a secret, so no message quotes it.
    fileprivate static let web = text("http://… or https://…", isDiscreet: true) {
        isWeb($0) ? nil : "is not a valid URL"
    }
    fileprivate static let program = text("the absolute path of a program, without arguments") {
        $0.hasPrefix("/") && canRun($0)
            ? nil : "\"\(printable($0))\" is not a program that can be run"
    }
}

/// Returns whether a path is that of a program.
func canRun(_ path: String) -> Bool {
    var isFolder = ObjCBool(false)
    return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
        && !isFolder.boolValue && access(path, X_OK) == 0
}

/// Returns whether a text is an `http` or `https` URL with a host.
func isWeb(_ address: String) -> Bool {
    guard let url = URL(string: address), let scheme = url.scheme?.lowercased() else {
        return false
    }
    return ["http", "https"].contains(scheme) && url.host?.isEmpty == false
}
