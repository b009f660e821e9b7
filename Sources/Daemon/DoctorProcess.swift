// Runs `waypost doctor --json` as a child process for a report.
import Glibc
import Host
import JSON

/// Examines the device in a process of its own: a check may hang, and takes memory.
///
/// It is killed by deinit if it has not ended by then. A class, because Swift 6.0.3 crashes on its
/// descriptors as variables of one function.
final class DoctorProcess {
    /// `waypost doctor` ends within 8 s.
    private static let limit = Duration.seconds(9)
    private static let maxBytes = 64 << 10

    private let output: Descriptor
    /// Open here too, so that reading goes on until the child has ended.
    private let writing: Descriptor
    private let child: ChildProcess

    private init(_ command: [String]) throws {
        guard let program = command.first else { throw Failure("no command examines this device") }
        let pipe = try makePipe()
        output = Descriptor(owning: pipe.reading)
        writing = Descriptor(owning: pipe.writing)
        let nothing = try Descriptor(opening: "/dev/null", O_RDWR)
        child = try ChildProcess(
            program,
            Array(command.dropFirst()),
            files: [
                STDIN_FILENO: nothing.number, STDOUT_FILENO: writing.number,
                STDERR_FILENO: nothing.number,
            ]
        )
    }

    /// Returns the JSON object that a command prints; throws if it prints none in time.
    static func output(of command: [String], until stop: StopSignal) throws -> [UInt8] {
        let bytes = try DoctorProcess(command).read(until: stop)
        guard let value = try? JSONValue(bytes), case .object = value else {
            throw Failure("`waypost doctor` printed no JSON object")
        }
        // Written again: as a part of a record it must not have a line end.
        var json = JSONWriter()
        value.write(to: &json)
        return json.bytes
    }

    private func read(until stop: StopSignal) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: Self.maxBytes)
        let end = SystemClock().now() + Self.limit
        while bytes.count < Self.maxBytes {
            let rest = end - SystemClock().now()
            guard rest > .zero, !stop.isRaised else { throw Failure("it did not end within 9 s") }
            var entries = [PollEntry(output.number), child.end, PollEntry(stop.descriptor)]
            _ = stop.wait(for: &entries, timeout: rest)
            if entries[0].isReady {
                let count = Glibc.read(output.number, &buffer, buffer.count)
                bytes += buffer.prefix(max(0, count))
            } else if entries[1].isReady {
                return bytes
            }
        }
        throw Failure("it printed more than 64 KiB")
    }
}
