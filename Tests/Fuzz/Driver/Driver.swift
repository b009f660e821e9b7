// libFuzzer over one of the targets: waypost-fuzz TARGET [libFuzzer's arguments]; alone it lists them.
import CFuzzer
import Glibc

/// Chosen once, before there is a second thread: libFuzzer's callback can hold no context.
private let target = FuzzTarget.all.first { $0.name == CommandLine.arguments.dropFirst().first }

private func one(_ data: UnsafePointer<UInt8>?, _ size: Int) -> Int32 {
    target?.run([UInt8](UnsafeBufferPointer(start: data, count: size)))
    return 0
}

@main struct Driver {
    static func main() {
        guard target != nil else {
            print(FuzzTarget.all.map(\.name).joined(separator: "\n"))
            exit(CommandLine.arguments.count > 1 ? 64 : 0)
        }
        signal(SIGPIPE, SIG_IGN)
        let arguments = [CommandLine.arguments[0]] + CommandLine.arguments.dropFirst(2)
        var count = Int32(arguments.count)
        var strings = arguments.map { strdup($0) } + [nil]
        exit(
            strings.withUnsafeMutableBufferPointer { buffer in
                var start = buffer.baseAddress
                return waypost_run_fuzzer(&count, &start, one)
            }
        )
    }
}
