// What `waypost resend` asks of the running gateway.
package import Host
import Queue
import Records

/// Uploaded records that are to be sent again.
package struct ResendRequest: Sendable, Equatable {
    /// Its name, here or on the wire; nil: all streams.
    package var stream: String?
    /// When they were uploaded; `until` is not included.
    package var since: WallTime
    package var until: WallTime?

    package init(stream: String? = nil, since: WallTime, until: WallTime? = nil) {
        self.stream = stream
        self.since = since
        self.until = until
    }

    /// As it goes over the control socket.
    package var control: ControlRequest {
        let end = until.map { "\($0.milliseconds)" } ?? "-"
        let words = ["\(since.milliseconds)", end] + [stream].compactMap { $0 }
        return ControlRequest(.resend, words.joined(separator: " "))
    }

    /// nil for anything that `control` did not make.
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

/// Marks what is to be sent again; waits for the writer.
struct ResendHandler: Sendable {
    let queue: Queue
    let configuration: Configuration

    /// Throws a Failure for a stream that is not there.
    func resend(_ argument: String) throws -> QuarantineChange {
        guard let request = ResendRequest(argument: argument) else {
            throw Failure(
                "resend: the request is not valid; use the `waypost` of the running version"
            )
        }
        let stream = try request.stream.map { try self.stream($0) }
        let range = ResendRange(stream, since: request.since, until: request.until)
        let marked = try queue.perform { try $0.resend(range) }
        return QuarantineChange(batches: marked.batches, records: marked.records)
    }

    private func stream(_ name: String) throws -> Records.Stream {
        let streams = queue.streams.streams
        let found = streams.first { $0.name == name || configuration.wire(of: $0) == name }
        if let found { return found }
        let known = streams.map(\.name).joined(separator: ", ")
        throw Failure("\"\(name.prefix(40))\" is not a stream of this device; use one of \(known)")
    }
}
