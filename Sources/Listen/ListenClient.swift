// The client of the listen socket, used by `waypost listen`.
import Glibc
package import Host
package import Setup

/// Samples as they come from the gateway, with their place in the recording.
package struct AudioPiece: Sendable {
    package var header: AudioHeader
    package var start: AudioTime
    package var samples: [Int16]
    /// The first sample does not follow the last one of the piece before.
    package var isAfterGap: Bool
}

/// Receives the recording from a gateway, also from the next one after a restart.
package final class ListenClient {
    private static let retryAfter = Duration.seconds(1)
    /// Silence of the gateway for this long is reported, once until samples come again.
    private static let noticeAfter = Duration.seconds(10)

    private let configuration: Configuration
    private let path: String
    private let warn: (String) -> Void
    private let clock = SystemClock()
    private var channel: LineChannel?
    private var header: AudioHeader?
    private var block: [UInt8] = []
    /// The run of the last sample, and the number of the next one in it.
    private var expected: (run: Int64, frame: Int64)?
    private var heardAt: BootInstant
    private var isNoticed = false
    private var retriesAt: BootInstant?
    /// Samples that the gateway dropped because this program was too slow.
    package private(set) var lost = 0

    /// `warn` gets messages for people.
    package init(_ configuration: Configuration, warn: @escaping (String) -> Void) {
        (self.configuration, self.warn) = (configuration, warn)
        path = "\(configuration.runtimeDirectory)/\(ListenService.fileName)"
        heardAt = clock.now()
    }

    /// Connects for the first time; throws a `Failure` that says why that is not possible.
    package func connect() throws {
        do throws(SystemError) {
            channel = LineChannel(try UnixSocket.connect(to: path))
        } catch {
            throw Failure(ListenAbsence.message(error, path: path, configuration))
        }
    }

    /// The entry to poll; `isWanted` false: samples stay in the socket.
    package func entry(isWanted: Bool = true) -> PollEntry {
        PollEntry(isWanted ? channel?.number ?? -1 : -1)
    }

    /// When `turn` must be called at the latest.
    package var due: BootInstant { retriesAt ?? heardAt + Self.noticeAfter }

    /// Reads what has come, and reconnects to a gateway that was restarted.
    ///
    /// Throws a `Failure` if what comes is not this protocol, or the gateway refuses.
    package func turn(_ entry: PollEntry) throws -> [AudioPiece] {
        let now = clock.now()
        if channel == nil, retriesAt.map({ $0 <= now }) ?? false { reconnect(now) }
        guard entry.isReady, channel != nil else {
            notice(now)
            return []
        }
        return try receive(now)
    }

    private func reconnect(_ now: BootInstant) {
        channel = try? LineChannel(UnixSocket.connect(to: path))
        retriesAt = channel == nil ? now + Self.retryAfter : nil
    }

    private func notice(_ now: BootInstant) {
        guard now - heardAt >= Self.noticeAfter else { return }
        heardAt = now
        guard !isNoticed else { return }
        isNoticed = true
        let what = channel == nil ? "the gateway does not answer" : "no audio is being recorded"
        warn("\(what); waiting for it; `waypost status` shows why")
    }

    private func receive(_ now: BootInstant) throws -> [AudioPiece] {
        guard let channel else { return [] }
        let outcome = channel.receive(atMost: 64 << 10)
        var pieces: [AudioPiece] = []
        while let piece = try next(channel) { pieces.append(piece) }
        if !pieces.isEmpty { (heardAt, isNoticed) = (now, false) }
        if outcome == .ended {
            warn("the gateway closed the connection; waiting for it")
            (self.channel, header, block) = (nil, nil, [])
            retriesAt = now + Self.retryAfter
        }
        return pieces
    }

    private func next(_ channel: LineChannel) throws -> AudioPiece? {
        if header == nil {
            guard let line = channel.input.next(limit: AudioHeader.lineLimit) else { return nil }
            guard case .whole(let bytes) = line else {
                throw Failure("\(path): this is not the listen socket of a waypost")
            }
            if let why = ListenAbsence.refusal(bytes) { throw Failure(why) }
            header = try AudioHeader(line: bytes)
        }
        guard let header, let start = header.start else { return nil }
        block += channel.input.takeBytes(atMost: header.bytes - block.count)
        guard block.count == header.bytes else { return nil }
        defer { (self.header, block) = (nil, []) }
        return piece(header, start)
    }

    private func piece(_ header: AudioHeader, _ start: AudioTime) -> AudioPiece {
        let samples = stride(from: 0, to: block.count, by: 2).map {
            Int16(truncatingIfNeeded: Int(block[$0]) | Int(block[$0 + 1]) << 8)
        }
        let isNext = expected.map { $0.run == header.run && $0.frame == header.frame } ?? false
        report(header, start)
        expected = (header.run, header.frame + Int64(samples.count))
        return AudioPiece(header: header, start: start, samples: samples, isAfterGap: !isNext)
    }

    private func report(_ header: AudioHeader, _ start: AudioTime) {
        if header.lost > 0 {
            lost += header.lost
            let seconds = roughSeconds(header.lost, rate: header.rate)
            warn(
                "lost \(header.lost) samples (\(seconds)) before \(start.rfc3339): read too slowly"
            )
        } else if let expected, expected.run != header.run {
            warn("the recording was interrupted until \(start.rfc3339)")
        }
    }
}

/// Returns the length of so many samples with one decimal, for people: `2.4 s`.
func roughSeconds(_ frames: Int, rate: Int) -> String {
    let tenths = (frames * 10 + rate / 2) / max(1, rate)
    return "\(tenths / 10).\(tenths % 10) s"
}
