// Helpers of the location source's tests.
import CLinux
import Foundation
import Glibc
import Host
import Support

func run(_ program: String, _ arguments: [String]) throws {
    let process = try Process.run(URL(fileURLWithPath: program), arguments: arguments)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw NeverHappened(what: arguments.joined(separator: " "))
    }
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
                // Reads what the client still sends, so that closing does not reset unread data.
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

extension SeededRandom {
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
