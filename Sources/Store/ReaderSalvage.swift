// The reader's part for salvage: questions that only a damaged database is asked.
internal import Host

extension Reader {
    /// The records of a range, all or none.
    func salvage(_ stream: Stream, _ range: ClosedRange<Int64>) throws -> [SalvagedRecord] {
        var records: [SalvagedRecord] = []
        switch stream {
        case .location:
            try fixes(range) { records.append(.fix($0)) }
        case .beacons:
            try sightings(range) { records.append(.sighting($0)) }
            // A sighting whose beacon is not there any more was left out.
            guard try count(stream, range) == records.count else {
                throw SQLiteError(code: 11, message: "beacons are missing", statement: "")
            }
        case .events:
            try events(range) { records.append(.event($0, kind: $1, source: $2, detail: $3)) }
        case .surveys:
            try surveys(range) { records.append(.survey($0)) }
        case .audio:
            var found: [Stored<Chunk>] = []
            try chunks(range) { found.append($0) }
            for stored in found {
                let first = stored.record.firstSegment
                let last = first + Int64(max(1, stored.record.segments)) - 1
                let data = try (first...last).map { try required($0) }
                records.append(.chunk(stored, segments: data))
            }
        }
        // A damaged tree may lead to the same leaf twice: each row counts in its own place only.
        var last = range.lowerBound - 1
        for record in records {
            guard record.sequence > last, record.sequence <= range.upperBound else {
                throw SQLiteError(code: 11, message: "rows out of order", statement: "")
            }
            last = record.sequence
        }
        return records
    }

    private func required(_ id: Int64) throws -> [UInt8] {
        guard let segment = try segment(id) else {
            throw SQLiteError(code: 11, message: "segment \(id) is not there", statement: "")
        }
        return segment.data
    }

    /// The first and the last row that there may be, and whether the last is known.
    ///
    /// Where the end of the table cannot be read, as far beyond `known` as a long outage may have gone.
    func bounds(
        _ stream: Stream,
        known: Int64?
    ) -> (rows: ClosedRange<Int64>, isEndKnown: Bool)? {
        let first: Int64?
        let last: Int64?
        var isEndKnown = true
        do { first = try edge("min", stream) } catch { first = 1 }
        do {
            last = try edge("max", stream)
        } catch {
            last = (known ?? 0) + 1_000_000
            isEndKnown = false
        }
        guard let first, let last, first <= last else { return nil }
        return (first...last, isEndKnown)
    }

    /// Rows up to here may be gone by right: uploaded and purged, or evicted.
    ///
    /// Above, each was there.
    func settled(_ stream: Stream) throws -> Int64 {
        try ranges(
            "SELECT purged_through, purged_through FROM streams WHERE id=?",
            Int64(stream.rawValue)
        ).first?.upperBound ?? .max
    }

    /// Rows that the server has, in order.
    func uploadedRanges(_ stream: Stream) throws -> [ClosedRange<Int64>] {
        try ranges(
            "SELECT first, last FROM batches WHERE stream=? AND state IN (1, 3) ORDER BY first",
            Int64(stream.rawValue)
        )
    }

    /// The last segments of the last run, where no chunk has them: what was being recorded.
    func soundWithoutChunk() throws -> SalvagedRecord? {
        guard let run = try lastRun() else { return nil }
        let chunked = try lastChunkedSegment(run: run.id) ?? 0
        var chunk: Stored<Chunk>?
        var data: [[UInt8]] = []
        var frames = 0
        try segments(run: run.id, after: chunked) { id, boot, start, count, meanSquare, bytes in
            frames += count
            data.append(bytes)
            guard chunk == nil else { return }
            chunk = Stored(
                sequence: 0,
                boot: boot,
                record: Chunk(
                    codec: run.codec,
                    rate: run.rate,
                    device: run.device,
                    preskip: run.preskip,
                    firstSegment: id,
                    segments: 0,
                    frames: 0,
                    overlapFrames: 0,
                    meanSquare: meanSquare,
                    start: start
                )
            )
        }
        guard var tail = chunk, data.count <= 60 else { return nil }
        tail.record.segments = data.count
        tail.record.frames = frames
        return .chunk(tail, segments: data)
    }
}
