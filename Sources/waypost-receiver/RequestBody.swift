// The body of a request, and answers that do not wait for its end.
import FlyingFox
import FlyingSocks
import Foundation

/// Reads a body once, piece by piece.
actor RequestBody {
    private var parts: HTTPBodySequence.AsyncIterator
    private var isAtEnd = false
    private var isBroken = false

    init(_ request: HTTPRequest) {
        parts = request.bodySequence.makeAsyncIterator()
    }

    func next() async throws -> Data? {
        guard !isAtEnd else { return nil }
        // After bad framing nothing on the connection can be told apart.
        guard !isBroken else { throw SocketError.disconnected }
        isBroken = true
        // A copy, because an actor's own property cannot be mutated across a suspension.
        var parts = parts
        defer { self.parts = parts }
        let part = try await parts.next(isolation: #isolation)
        isBroken = false
        isAtEnd = part == nil
        return part
    }

    /// Reads to the end and keeps nothing; throws when that takes more than `limit` bytes.
    func discard(limit: Int) async throws {
        var left = limit
        while let part = try await next() {
            left -= part.count
            guard left >= 0 else { throw SocketError.disconnected }
        }
    }
}

/// An answer to a request whose body was not read to its end.
///
/// What is left of a body would be taken for the next request, and the server's search for a line in it
/// takes a time that grows with the square of its length. So the rest is read and dropped behind the answer;
/// where it has no end, throwing here closes the connection.
struct EarlyAnswer: AsyncBufferedSequence {
    typealias Element = UInt8

    /// Bytes of a refused body that are read for the sake of the connection.
    static let limit = 64 << 20

    let text: Data
    let rest: RequestBody

    func makeAsyncIterator() -> Iterator { Iterator(text: Array(text)[...], rest: rest) }

    struct Iterator: AsyncBufferedIteratorProtocol {
        var text: ArraySlice<UInt8>
        let rest: RequestBody

        mutating func next() async throws -> UInt8? {
            if let byte = text.popFirst() { return byte }
            try await rest.discard(limit: EarlyAnswer.limit)
            return nil
        }

        mutating func nextBuffer(suggested count: Int) async throws -> ArraySlice<UInt8>? {
            let part = text.prefix(Swift.max(count, 1))
            text = text.dropFirst(part.count)
            if !part.isEmpty { return part }
            try await rest.discard(limit: EarlyAnswer.limit)
            return nil
        }
    }
}
