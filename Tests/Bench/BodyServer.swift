// The servers of `waypost-bench receiver`: the receiver beside this program, and nginx.
import Glibc
import Host

/// A server that runs until it is stopped.
struct BodyServer {
    let port: UInt16
    private let process: pid_t

    /// Returns the path of nginx, installed or unpacked by `deploy/test`.
    static func findNginx() throws -> String {
        let places = ["/usr/sbin/nginx", ".build/servers/bin/nginx"]
        guard let found = places.first(where: { access($0, X_OK) == 0 }) else {
            throw BenchFailure(
                "nginx, to compare with, is missing; run deploy/test, which unpacks it"
            )
        }
        return found
    }

    /// Removes a folder and what a server left in it.
    static func remove(_ folder: String) {
        // Errors are ignored: leftovers only take space.
        try? run(["rm", "-rf", folder])
    }

    private static func run(_ words: [String]) throws {
        let process = try spawn(words, output: STDERR_FILENO)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
    }

    static func receiver(_ folder: String) throws -> BodyServer {
        let words = [
            try AllCommand.programs() + "/waypost-receiver", "--listen", "127.0.0.1:0", "--data",
            folder + "/data", "--quiet",
        ]
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw SystemError.last("pipe") }
        defer { for end in ends { close(end) } }
        let process = try spawn(words, output: ends[1])
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while line.last != 10, poll(ends[0]), read(ends[0], &byte, 1) == 1 { line.append(byte) }
        let parts = String(decoding: line, as: UTF8.self).split { $0 == ":" || $0 == "," }
        guard parts.count > 2, let port = UInt16(parts[2]) else {
            kill(process, SIGKILL)
            waitpid(process, nil, 0)
            throw BenchFailure(
                "\(words[0]) did not start; build it: swift build -c release --product waypost-receiver"
            )
        }
        return BodyServer(port: port, process: process)
    }

    private static func poll(_ number: Int32) -> Bool {
        var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&entry, 1, 20_000) == 1
    }

    /// A body goes into a file as it comes; then a second server in the same nginx answers.
    static func nginx(_ folder: String) throws -> BodyServer {
        let (port, inner) = (try freePort(), try freePort())
        let text = """
            daemon off; worker_processes auto; pid \(folder)/nginx.pid; error_log stderr crit;
            \(geteuid() == 0 ? "user root;" : "")
            events { worker_connections 512; }
            http {
              access_log off; client_max_body_size 16m; client_body_temp_path \(folder)/bodies;
              client_body_in_file_only on; proxy_temp_path \(folder)/proxy; fastcgi_temp_path \(folder)/f;
              uwsgi_temp_path \(folder)/u; scgi_temp_path \(folder)/s;
              server { listen 127.0.0.1:\(inner); location / { return 200 '{}'; } }
              server {
                listen 127.0.0.1:\(port);
                location / { proxy_pass http://127.0.0.1:\(inner); proxy_pass_request_body off;
                             proxy_set_header Content-Length ""; }
              }
            }

            """
        let path = folder + "/nginx.conf"
        guard let file = fopen(path, "w"), fputs(text, file) >= 0, fclose(file) == 0 else {
            throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
        }
        let server = BodyServer(
            port: port,
            process: try spawn(
                [try findNginx(), "-p", folder, "-c", path, "-e", "stderr"],
                output: STDERR_FILENO
            )
        )
        for _ in 0..<1000 where !isListening(port) { usleep(10_000) }
        return server
    }

    /// Ends it: seconds of CPU it took, and bytes that its largest process had resident.
    func stop() -> (cpu: Double, resident: Double) {
        kill(process, SIGTERM)
        var (status, usage): (Int32, rusage) = (0, rusage())
        while wait4(process, &status, 0, &usage) < 0, errno == EINTR {}
        let micros =
            (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000
            + Int(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        return (Double(micros) / 1e6, Double(usage.ru_maxrss) * 1024)
    }

    // MARK: Ports and processes

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func freePort() throws -> UInt16 {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(number) }
        var address = address(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, size) == 0 ? getsockname(number, $0, &size) : -1
            }
        }
        guard code == 0 else { throw SystemError.last("bind") }
        return UInt16(bigEndian: address.sin_port)
    }

    private static func isListening(_ port: UInt16) -> Bool {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(number) }
        return withUnsafePointer(to: address(port)) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    private static func spawn(_ words: [String], output: Int32) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        var arguments = words.map { strdup($0) } + [nil]
        // From /proc, because C's `environ` is a variable that any thread may change.
        var environment =
            ProcessFile.text("/proc/self/environ").split(separator: "\0").map { strdup(String($0)) }
            + [nil]
        defer { for text in arguments + environment { free(text) } }
        var process = pid_t()
        let code = posix_spawnp(&process, words[0], &actions, nil, &arguments, &environment)
        guard code == 0 else { throw SystemError("posix_spawn", on: words[0], code: code) }
        return process
    }
}
