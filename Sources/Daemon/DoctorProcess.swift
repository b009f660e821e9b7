// Runs `waypost doctor --json` as a child process for a report.
import Glibc
import Host
import JSON

/// Examines the device in a process of its own: a check may hang, and takes memory.
enum DoctorProcess {
    /// `waypost doctor` ends within 8 s.
    private static let limit = Duration.seconds(9)
    private static let maxBytes = 64 << 10

    /// Returns the JSON object that a command prints; throws if it prints none in time.
    static func output(of command: [String], until stop: StopSignal) throws -> [UInt8] {
        guard let program = command.first else { throw Failure("no command examines this device") }
        let pipe = try makePipe()
        let output = Descriptor(owning: pipe.reading)
        let writing = Descriptor(owning: pipe.writing)
        let nothing = try Descriptor(opening: "/dev/null", O_RDWR)
        let child = try ChildProcess(
            program,
            Array(command.dropFirst()),
            files: [
                STDIN_FILENO: nothing.number, STDOUT_FILENO: writing.number,
                STDERR_FILENO: nothing.number,
            ]
        )
        // It is killed if it has not ended by then.
        let bytes = try withExtendedLifetime(child) { try read(output.number, child, until: stop) }
        guard let value = try? JSONValue(bytes), case .object = value else {
            throw Failure("`waypost doctor` printed no JSON object")
        }
        // Written again: as a part of a record it must not have a line end.
        var json = JSONWriter()
        value.write(to: &json)
        return json.bytes
    }

    /// Reads until the child has ended: this process has the writing end open, too.
    private static func read(_ output: Int32, _ child: ChildProcess, until stop: StopSignal) throws
        -> [UInt8]
    {
        var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: maxBytes))
        let end = SystemClock().now() + limit
        while bytes.count < maxBytes {
            let rest = end - SystemClock().now()
            guard rest > .zero, !stop.isRaised else { throw Failure("it did not end within 9 s") }
            var entries = [PollEntry(output), child.end, PollEntry(stop.descriptor)]
            _ = stop.wait(for: &entries, timeout: rest)
            if entries[0].isReady {
                let count = Glibc.read(output, &buffer, buffer.count)
                bytes += buffer.prefix(max(0, count))
            } else if entries[1].isReady {
                return bytes
            }
        }
        throw Failure("it printed more than 64 KiB")
    }
}
