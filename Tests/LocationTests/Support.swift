// What the tests of the location source share.
import CLinux
import Foundation
import Glibc
import Host

/// What was waited for did not happen.
struct NeverHappened: Error {
    var what: String
}

/// Waits for a condition, not for a time.
func waitUntil(_ what: String, limit: Duration = .seconds(60), _ condition: () throws -> Bool)
    throws
{
    let clock = SystemClock()
    let deadline = clock.now() + limit
    while try !condition() {
        guard clock.now() < deadline else { throw NeverHappened(what: what) }
        usleep(5000)
    }
}

/// A value behind a lock.
final class Locked<Value: Sendable>: @unchecked Sendable {
    // Unchecked because every access is under `lock`.
    private var content: Value
    private let lock = NSLock()

    init(_ value: Value) {
        content = value
    }

    var value: Value { lock.withLock { content } }

    @discardableResult
    func update<Result>(_ change: (inout Value) -> Result) -> Result {
        lock.withLock { change(&content) }
    }
}

func run(_ program: String, _ arguments: [String]) throws {
    let process = try Process.run(URL(fileURLWithPath: program), arguments: arguments)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw NeverHappened(what: arguments.joined(separator: " "))
    }
}

/// A listening socket on a port that the kernel chose.
func listening(backlog: Int32 = 8) -> (socket: Int32, port: UInt16) {
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            _ = bind(number, $0, length)
            _ = listen(number, backlog)
            _ = getsockname(number, $0, &length)
        }
    }
    return (number, UInt16(bigEndian: address.sin_port))
}

/// A port that nobody listens on now.
func freePort() throws -> UInt16 {
    let (number, port) = listening()
    close(number)
    return port
}

/// Sends each client some text in odd pieces and hangs up.
final class LineServer: Sendable {
    let port: UInt16
    private let listener: Int32

    init(_ text: @escaping @Sendable (_ connection: Int) -> String) throws {
        let (listener, port) = listening()
        self.listener = listener
        self.port = port
        Thread.detachNewThread {
            var connection = 0
            while case let client = accept(listener, nil, nil), client >= 0 {
                connection += 1
                var rest = Array(text(connection).utf8)[...]
                while !rest.isEmpty {
                    let piece = Array(rest.prefix(997))
                    let count = send(client, piece, piece.count, Int32(MSG_NOSIGNAL))
                    guard count > 0 else { break }
                    rest = rest.dropFirst(count)
                }
                shutdown(client, Int32(SHUT_WR))
                // What the client still says is read, so that closing does not reset what it has not read yet.
                var block = [UInt8](repeating: 0, count: 512)
                while recv(client, &block, block.count, 0) > 0 {}
                Glibc.close(client)
            }
        }
    }

    func close() {
        shutdown(listener, Int32(SHUT_RDWR))
    }
}

/// The same numbers at each run (SplitMix64).
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// One of the lines with a few characters changed, and no line end in it.
    mutating func mutated(_ lines: [String]) -> String {
        var bytes = Array((lines.randomElement(using: &self) ?? "").utf8)
        for _ in 0..<Int.random(in: 0...6, using: &self) where !bytes.isEmpty {
            let index = Int.random(in: 0..<bytes.count, using: &self)
            bytes[index] = UInt8.random(in: 32...126, using: &self)
        }
        return String(
            decoding: bytes.prefix(Int.random(in: 1...bytes.count, using: &self)),
            as: UTF8.self
        )
    }
}
