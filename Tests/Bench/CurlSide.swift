// The other side of the upload: the `curl` command line, posting bodies that are finished files.
import Glibc
import Host
import HTTP
import Upload

enum CurlSide {
    /// Posts the files that `bodies` made, `rows` of them, by one curl over one connection.
    static func post(_ task: SideTask) throws -> Figures {
        let list = task.database + ".curl"
        try write(requests(task), to: list)
        var figures = Figures()
        let before = Usage.now()
        let process = try start(["curl", "--silent", "--show-error", "--fail", "--config", list])
        var status: Int32 = 0
        var usage = rusage()
        while wait4(process, &status, 0, &usage) < 0, errno == EINTR {}
        guard status == 0 else { throw BenchFailure("curl failed (status \(status))") }
        figures["wall_s"] = Usage.now().wall - before.wall
        figures["cpu_s"] =
            Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
        figures["resident_peak_bytes"] = Double(usage.ru_maxrss) * 1024
        return figures
    }

    /// curl's own format: options a line, requests split by `next`.
    private static func requests(_ task: SideTask) -> String {
        (1...task.rows).map { number in
            var lines = [
                "url = \"\(task.endpoint)\"", "request = POST",
                "upload-file = \"\(task.database)-\(number).body\"", "output = /dev/null",
                "header = \"Content-Type: application/json\"", "header = \"Expect:\"",
            ]
            if let encoding = task.compression.contentEncoding {
                lines.append("header = \"Content-Encoding: \(encoding)\"")
            }
            return lines.joined(separator: "\n") + "\n"
        }.joined(separator: "next\n")
    }

    private static func write(_ text: String, to path: String) throws {
        guard let file = fopen(path, "w") else {
            throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        guard fputs(text, file) >= 0 else {
            throw BenchFailure("\(path): \(String(cString: strerror(errno)))")
        }
    }

    private static func start(_ words: [String]) throws -> pid_t {
        var arguments = words.map { strdup($0) } + [nil]
        // From /proc, because C's `environ` is a variable that any thread may change.
        var environment =
            ProcessFile.text("/proc/self/environ").split(separator: "\0")
            .map { strdup(String($0)) } + [nil]
        defer { for text in arguments + environment { free(text) } }
        var process = pid_t()
        let code = posix_spawnp(&process, words[0], nil, nil, &arguments, &environment)
        guard code == 0 else {
            throw BenchFailure("curl: \(String(cString: strerror(code))); apt install curl")
        }
        return process
    }
}
