// The request of `waypost resend` and its handler in the gateway.
package import Host
package import Queue
import Records
package import Setup

/// Selects uploaded records to send again.
package struct ResendRequest: Sendable, Equatable {
    /// The stream's own name or its wire name; nil: all streams.
    package var stream: String?
    /// The time of the upload; `until` is excluded.
    package var since: WallTime
    package var until: WallTime?

    package init(stream: String? = nil, since: WallTime, until: WallTime? = nil) {
        self.stream = stream
        self.since = since
        self.until = until
    }

    /// The request for the control socket.
    package var control: ControlRequest {
        let end = until.map { "\($0.milliseconds)" } ?? "-"
        let words = ["\(since.milliseconds)", end] + [stream].compactMap { $0 }
        return ControlRequest(.resend, words.joined(separator: " "))
    }

    /// Parses an argument made by `control`; nil for anything else.
    init?(argument: String) {
        let words = argument.split(separator: " ", maxSplits: 2).map { String($0) }
        guard words.count >= 2, let since = Int64(words[0]) else { return nil }
        let until = Int64(words[1])
        guard until != nil || words[1] == "-" else { return nil }
        self.init(
            stream: words.count > 2 ? words[2] : nil,
            since: WallTime(milliseconds: since),
            until: until.map { WallTime(milliseconds: $0) }
        )
    }
}

/// Marks records to send again; blocks until the writer has done it.
package struct ResendHandler: Sendable {
    private let queue: Queue
    private let configuration: Configuration

    package init(queue: Queue, configuration: Configuration) {
        (self.queue, self.configuration) = (queue, configuration)
    }

    /// Throws a Failure for an unknown stream.
    func resend(_ argument: String) throws -> QuarantineChange {
        guard let request = ResendRequest(argument: argument) else {
            throw Failure(
                "resend: the request is not valid; use the `waypost` of the running version"
            )
        }
        return try resend(request)
    }

    /// Throws a Failure for an unknown stream, or the disk's error.
    package func resend(_ request: ResendRequest) throws -> QuarantineChange {
        let stream = try request.stream.map { try self.stream($0) }
        let range = ResendRange(stream, since: request.since, until: request.until)
        let marked = try queue.perform { try $0.resend(range) }
        let (batches, records, gone) = marked
        return QuarantineChange(batches: batches, records: records, gone: gone > 0 ? gone : nil)
    }

    private func stream(_ name: String) throws -> Records.Stream {
        let streams = queue.streams.streams
        let found = streams.first { $0.name == name || configuration.wire(of: $0) == name }
        if let found { return found }
        let known = streams.map(\.name).joined(separator: ", ")
        throw Failure("\"\(name.prefix(40))\" is not a stream of this device; use one of \(known)")
    }
}
