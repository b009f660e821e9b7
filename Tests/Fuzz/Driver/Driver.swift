// The callbacks of libFuzzer, which has the main function; FUZZ_TARGET selects the target, `list`
// prints all names.
import FuzzSupport
import Glibc

private let targets = FuzzTarget.gateway + FuzzTarget.receiver

/// Selected before there is a second thread, because libFuzzer's callback has no context argument.
private let target: FuzzTarget? = {
    let name = getenv("FUZZ_TARGET").map { String(cString: $0) }
    return targets.first { $0.name == name }
}()

/// Initialises the fuzzer; called once, with the program's arguments.
@_cdecl("LLVMFuzzerInitialize") public func initialise(
    _ count: UnsafeMutablePointer<Int32>?,
    _ arguments: UnsafeMutableRawPointer?
) -> Int32 {
    if target == nil {
        print(targets.map(\.name).joined(separator: "\n"))
        exit(0)
    }
    signal(SIGPIPE, SIG_IGN)
    return 0
}

/// Runs the target with one input.
@_cdecl("LLVMFuzzerTestOneInput") public func one(
    _ data: UnsafePointer<UInt8>?,
    _ size: Int
) -> Int32 {
    target?.run([UInt8](UnsafeBufferPointer(start: data, count: size)))
    return 0
}
