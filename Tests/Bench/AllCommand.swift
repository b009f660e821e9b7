// `waypost-bench all`: every bench, one after the other, and one table.
import ArgumentParser
import Glibc
import Host

struct AllCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "all",
        abstract: "Run every bench, and print one table: ours, beside it, ratio, goal, met.",
        discussion:
            "What it takes: waypost-bench all --help; it is Tests/Bench/all of the source tree."
    )

    @Argument(parsing: .captureForPassthrough, help: "Given to Tests/Bench/all.")
    var options: [String] = []

    mutating func run() throws {
        let build = try Self.programs()
        let script = try Self.script(above: build)
        var arguments = (["python3", "-B", script, "--build", build] + options)
            .map { strdup($0) }
        arguments.append(nil)
        execvp("python3", arguments)
        throw BenchFailure("python3: \(String(cString: strerror(errno)))")
    }

    /// The folder that this program was built into, with the others.
    static func programs() throws -> String {
        guard let path = realpath("/proc/self/exe", nil) else { throw SystemError.last("realpath") }
        defer { free(path) }
        return folder(of: String(cString: path))
    }

    private static func folder(of path: String) -> String {
        String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex))
    }

    /// The source tree is some folders above what was built from it.
    private static func script(above build: String) throws -> String {
        var place = build
        while !place.isEmpty {
            let script = "\(place)/Tests/Bench/all"
            if access(script, R_OK) == 0 { return script }
            place = folder(of: place)
        }
        throw BenchFailure("\(build): no Tests/Bench/all above it; run it where it was built")
    }
}
