import Foundation
import Host
import Support

/// nginx with a certificate of each kind, made for this run; removed with the object.
final class TLSFixture {
    /// The kind of server on a port.
    enum Kind: String, CaseIterable {
        case good, expired, future, otherHost, selfSigned, oldTLS, small
    }

    static let isPossible = Tree.hasTool("nginx")

    private let temporary = TemporaryFolder()
    var folder: String { temporary.path }
    private(set) var ports: [Kind: UInt16] = [:]
    private let nginx = Process()

    init() throws {
        do {
            try makeCertificates()
            try start()
        } catch {
            remove()
            throw error
        }
    }

    deinit { remove() }

    private func remove() {
        if nginx.isRunning {
            kill(nginx.processIdentifier, SIGKILL)
            nginx.waitUntilExit()
        }
    }

    func endpoint(_ kind: Kind, host: String = "127.0.0.1") -> String {
        "https://\(host):\(ports[kind] ?? 0)/api/ingest"
    }

    /// Returns the pin of one of the certificates, as curl's `sha256//…`.
    func pin(_ kind: Kind) throws -> String {
        let digest = try shell(
            """
            openssl x509 -in \(kind.rawValue).pem -pubkey -noout | openssl pkey -pubin -outform der |
            openssl dgst -sha256 -binary | openssl base64
            """
        )
        return "sha256//" + digest.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @discardableResult
    private func shell(_ script: String) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-ec", script]
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw NeverHappened(what: script) }
        return String(decoding: data, as: UTF8.self)
    }

    /// `openssl ca`, because the other commands of OpenSSL 3.0 cannot set a start date.
    private func makeCertificates() throws {
        try """
        [ca]
        default_ca = test
        [test]
        database = index
        serial = serial
        new_certs_dir = .
        default_md = sha256
        policy = any
        copy_extensions = copy
        unique_subject = no
        [any]
        commonName = supplied
        """.write(toFile: folder + "/ca.conf", atomically: true, encoding: .utf8)
        try shell(
            """
            touch index; echo 01 > serial
            key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
            openssl req -x509 $key -keyout ca.key -out ca.pem -days 3650 -subj "/CN=Test authority"
            sign() {
                openssl req $key -keyout $1.key -out $1.csr -subj "/CN=$2" -addext "subjectAltName=$3"
                openssl ca -batch -notext -config ca.conf -cert ca.pem -keyfile ca.key -in $1.csr -out $1.pem \
                    -startdate $4 -enddate $5
            }
            here=DNS:localhost,IP:127.0.0.1
            sign good localhost $here 20200101000000Z 20800101000000Z
            sign expired localhost $here 20200101000000Z 20210101000000Z
            sign future localhost $here 20900101000000Z 20950101000000Z
            sign otherHost other.example DNS:other.example 20200101000000Z 20800101000000Z
            openssl req -x509 $key -keyout selfSigned.key -out selfSigned.pem -days 3650 -subj /CN=localhost \
                -addext "subjectAltName=$here"
            """
        )
    }

    private func start() throws {
        // A port may be taken before nginx starts: retry with others.
        for _ in 0..<5 {
            try configure()
            let process = nginx
            process.executableURL = URL(fileURLWithPath: Tree.tool("nginx"))
            process.arguments = [
                "-p", folder, "-c", folder + "/nginx.conf", "-e", folder + "/error.log",
            ]
            process.standardError = FileHandle.nullDevice
            try process.run()
            try waitUntil("nginx answers or ends") { !process.isRunning || isListening() }
            if process.isRunning { return }
            throw NeverHappened(
                what: "nginx: "
                    + ((try? String(contentsOfFile: folder + "/error.log", encoding: .utf8)) ?? "")
            )
        }
    }

    private func isListening() -> Bool {
        FileManager.default.fileExists(atPath: folder + "/nginx.pid")
    }

    private func configure() throws {
        var text = """
            daemon off;
            master_process off;
            pid \(folder)/nginx.pid;
            error_log \(folder)/error.log;
            events { worker_connections 64; }
            http {
            access_log off;
            default_type application/json;
            client_body_temp_path \(folder)/body;
            proxy_temp_path \(folder)/proxy;
            fastcgi_temp_path \(folder)/fastcgi;
            uwsgi_temp_path \(folder)/uwsgi;
            scgi_temp_path \(folder)/scgi;

            """
        for kind in Kind.allCases {
            let port = freePort()
            ports[kind] = port
            let file = [.oldTLS, .small].contains(kind) ? "good" : kind.rawValue
            let protocols =
                kind == .oldTLS
                ? "ssl_protocols TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0;"
                : "ssl_protocols TLSv1.2 TLSv1.3;"
            text += """
                server {
                listen 127.0.0.1:\(port) ssl http2;
                ssl_certificate \(folder)/\(file).pem;
                ssl_certificate_key \(folder)/\(file).key;
                \(protocols)
                client_max_body_size \(kind == .small ? "2k" : "0");
                location = /api/ingest { return 200 '{"accepted":100000}'; }
                }

                """
        }
        try (text + "}\n").write(
            toFile: folder + "/nginx.conf",
            atomically: true,
            encoding: .utf8
        )
    }
}
