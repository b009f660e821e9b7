// In which order a sync sends: the newest of the small streams, what waited for long, sound at last.
internal import Host
internal import Store

/// When the newest records of the small streams go before their backlog.
struct LivePass {
    /// Records of one stream that go first.
    static let records: Int64 = 1000

    /// When the last one was; nil while one is due.
    var doneAt: BootInstant?

    func isDue(_ now: BootInstant, every interval: Duration) -> Bool {
        doneAt.map { now - $0 >= interval } ?? true
    }
}

extension SyncRun {
    /// Small streams first: sound must not keep a position waiting.
    static let order: [Stream] = [.events, .surveys, .location, .beacons, .audio]

    /// Sends everything that was accepted before now; true when nothing of it is left.
    func sendAll(token: String) throws -> Bool {
        live.doneAt = nil
        // What comes in while this sync runs is the next one's.
        var ends: [Stream: Int64] = [:]
        for stream in Self.order { ends[stream] = try newest(stream)?.last }
        // A frozen batch, if there is one, is the first to find out whether the server is there: an outage
        // must not leave another small batch behind at each try.
        let hasReady = try queue.perform { writer in
            try Stream.allCases.contains { try writer.nextReady($0) != nil }
        }
        if !hasReady, try sendLive(isFirst: true, token: token) != .goOn { return false }
        var isDone = true
        for place in Self.order.indices {
            let index = (firstStream + place) % Self.order.count
            let stream = Self.order[index]
            switch try drain(stream, through: ends[stream], token: token) {
            case .goOn: break
            case .nextStream: isDone = false
            case .endSync:
                // Should one stream's records be what the server fails on, they hold no other up.
                firstStream = failure.isThere ? (index + 1) % Self.order.count : 0
                return false
            }
        }
        return isDone
    }

    private func newest(_ stream: Stream) throws -> PendingRange? {
        try queue.perform { try $0.pending(stream, newest: true) }
    }

    /// Sends a stream's batches, oldest first; now and then the newest of the small streams in between.
    private func drain(_ stream: Stream, through end: Int64?, token: String) throws -> Next {
        while !stop.isRaised {
            if requestsLeft == 0 { return .endSync }
            guard !resting.contains(stream) else { return .nextStream }
            guard let batch = try nextBatch(stream, through: end) else { return .goOn }
            let next = try send(batch, token: token)
            guard next == .goOn else { return next }
            guard live.isDue(clock.now(), every: settings.liveInterval) else { continue }
            let after = try sendLive(isFirst: live.doneAt == nil, token: token)
            guard after == .goOn else { return after }
        }
        return .endSync
    }

    /// The newest records of each small stream: at first of those that have more waiting than goes at once,
    /// later, while a backlog is sent, of each.
    private func sendLive(isFirst: Bool, token: String) throws -> Next {
        live.doneAt = clock.now()
        for stream in Self.order where stream != .audio && !resting.contains(stream) {
            if requestsLeft == 0 { return .endSync }
            guard let batch = try liveBatch(stream, isFirst: isFirst) else { continue }
            let next = try send(batch, token: token)
            // What one stream's records are refused for is no reason to leave the others.
            if next == .endSync { return next }
        }
        return .goOn
    }

    private func liveBatch(_ stream: Stream, isFirst: Bool) throws -> Batch? {
        guard var range = try newest(stream) else { return nil }
        let oldest = try queue.perform { try $0.pending(stream) }
        let isOnlyOne = oldest?.first == range.first
        var count = LivePass.records
        // Few enough to go with the backlog's first batch: no request of their own.
        if isFirst, isOnlyOne, range.last - range.first < count { return nil }
        let source = try RecordSource(reader: reader(), clockMap: range.clockMap)
        while true {
            range.first = max(range.first, range.last - count + 1)
            let last = try source.lastFitting(range, limit: settings.maxBatchBytes / 8)
            if last == range.last || count == 1 { break }
            count = max(1, count / 2)
        }
        let frozen = range
        return try queue.perform { try $0.freeze(frozen, through: frozen.last) }
    }
}
