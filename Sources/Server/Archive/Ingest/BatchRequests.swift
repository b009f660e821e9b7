// Handles uploads of batches: validates header and body, stores the batch, answers.
/// Handles upload requests.
///
/// The caller passes `store`, so archive and bucket share this code.
package import ServerBase
package import ServerWeb
package struct BatchRequests: Sendable {
    /// Inflating and checking need memory, so at most two bodies are checked at once; storing needs
    /// little.
    private let checking = SharedPlaces(2)
    /// The maximum size of a body on the wire, in bytes.
    package let maxBody: Int
    package let spoolFolder: String

    package init(maxBody: Int, spoolFolder: String) {
        self.maxBody = maxBody
        self.spoolFolder = spoolFolder
    }

    /// Decides by the header whether to read the body, which `answer` is then given with the
    /// idempotency key; the token is already checked.
    package func plan(
        _ head: RequestHead,
        _ log: ServerLog,
        _ answer: @escaping @Sendable (_ key: String, _ wire: Spool) throws -> HTTPAnswer
    ) -> RequestPlan {
        do {
            let key = try check(head)
            return .body(limit: maxBody, isKnown: true) { wire in
                do { return try answer(key, wire) } catch { return log.refused(error) }
            }
        } catch {
            return .answer(log.refused(error), isKnown: true)
        }
    }

    /// Checks the header, and returns the idempotency key.
    private func check(_ head: RequestHead) throws -> String {
        let key = try key(head)
        guard head.fields[.contentType]?.lowercased().hasPrefix("application/json") == true else {
            throw HTTPError(status: 415, reason: "Content-Type must be application/json")
        }
        guard head.isChunked || head.length != nil else {
            throw HTTPError(
                status: 411,
                reason: "a body needs Content-Length or Transfer-Encoding"
            )
        }
        try Inflater.check(head.fields[.contentEncoding] ?? "")
        guard head.length ?? 0 <= maxBody else { throw HTTPError.tooLarge(maxBody) }
        return key
    }

    /// Returns the idempotency key: a quoted string (RFC 8941, 3.3.3) of plain characters.
    private func key(_ head: RequestHead) throws -> String {
        let text = head.fields[.idempotencyKey] ?? ""
        let key = String(text.dropFirst().dropLast())
        guard text.count > 2, text.hasPrefix("\""), text.hasSuffix("\""), isName(key) else {
            throw HTTPError(status: 400, reason: "Idempotency-Key is missing or not a quoted key")
        }
        return key
    }

    /// Validates the batch in a request, stores it with `store`, and returns the response.
    ///
    /// Throws an HTTPError.
    ///
    /// `device`: the device that the token belongs to; "" if the token is valid for all. `jobs`
    /// returns the tag of a device's jobs once its batch is stored.
    package func answer(
        _ head: RequestHead,
        _ key: String,
        _ wire: Spool,
        from device: String,
        _ log: ServerLog,
        jobs: (String) -> String? = { _ in nil },
        _ store: (IncomingBatch, ByteView) throws -> Receipt
    ) throws -> HTTPAnswer {
        let (start, size) = (ContinuousClock.now, wire.count)
        // A token for any device says nothing about whose batch it is.
        let (body, batch) = try checking.use(device.isEmpty ? head.address : device) {
            try checked(head, wire)
        }
        guard device.isEmpty || device == batch.device else {
            throw HTTPError(status: 403, reason: "the token belongs to another device_id")
        }
        let receipt = try body.withView { try store(batch, $0) }
        let milliseconds = Int((ContinuousClock.now - start) / .milliseconds(1))
        log.write(
            "\(batch.device) \(batch.stream): \(receipt.accepted) records, \(receipt.duplicates) duplicates, \(size) bytes, \(milliseconds) ms"
        )
        var facts: [String: Any] = [
            "accepted": receipt.accepted, "duplicates": receipt.duplicates, "rejected": 0,
            "batch_id": key, "columns": 1,
        ]
        facts["jobs"] = jobs(batch.device)
        return HTTPAnswer(200, facts)
    }

    /// Returns the decompressed body and its batch.
    private func checked(_ head: RequestHead, _ wire: Spool) throws -> (Spool, IncomingBatch) {
        let encoding = head.fields[.contentEncoding] ?? ""
        let limit = WorkLimit.checking
        let body = try Inflater.inflate(
            wire,
            encoding: encoding,
            folder: spoolFolder,
            limit: limit
        )
        do {
            return (body, try body.withView { try IncomingBatch(checking: $0, limit: limit) })
        } catch let columns as IncomingColumns {
            let rows = Spool(folder: spoolFolder, memory: Inflater.memory)
            try body.withView {
                try columns.writeRows(of: $0, to: rows, atMost: Inflater.limit, limit: limit)
            }
            return (rows, try rows.withView { try IncomingBatch(checking: $0, limit: limit) })
        }
    }
}
