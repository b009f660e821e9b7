// A sentence of the protocol page, and the check that tries a server against it.

/// One sentence of waypost-protocol(7) that a server keeps or breaks.
package struct ConformanceCheck: Sendable {
    /// A short name that stays the same, for programs that read the report.
    package let name: String
    package let isRequired: Bool
    package let sentence: String
    /// Returns if the server keeps the sentence; throws a `CheckEnd` otherwise.
    let body: Body

    typealias Body = @Sendable (ConformanceTrial) throws -> Void

    /// All checks in the order of the page: later ones use what earlier ones learned of the server.
    package static let all = sentences.split(separator: "\n").compactMap { line -> Self? in
        let words = line.split(separator: " ", maxSplits: 2)
        guard words.count == 3, let body = bodies[String(words[0])] else { return nil }
        return Self(
            name: String(words[0]),
            isRequired: words[1] == "!",
            sentence: String(words[2]),
            body: body
        )
    }

    private static let bodies = [access, enrolment, uploads, hostile, jobs].reduce(into: [:]) {
        all,
        some in
        all.merge(some) { first, _ in first }
    }

    /// The sentences of the page: a name, `!` if it is required, and the text.
    private static let sentences = """
        token           ! A batch with a wrong token, or without one, is answered with 401 or 403.
        verify          ! verify answers a known token with 2xx and a JSON object (404 if not offered).
        verify-token    ! verify answers a wrong token with 401 or 403 and a JSON object.
        max-body        - The answer of verify has max_body.
        code            ! A code that is not valid is answered with 4xx, not 408 or 425, and a JSON object.
        enrol           ! A code is exchanged for a token, and batches with this token are accepted.
        enrol-again     ! The same device, code and token get the same answer again.
        code-once       ! A code that was used is not valid for another device.
        own-device      - With a token of one device, a batch of another device_id is refused (403).
        identity        ! A batch in JSON without Content-Encoding is answered with 2xx.
        answer-json     ! The body of that answer is JSON or empty.
        answer-denies   ! That answer does not deny having the records.
        fresh           ! Records that come for the first time are not called duplicates.
        id-again        ! A record that comes again under another key is stored once, by its id.
        key-again       ! A batch that comes again, the same bytes under the same key, is accepted.
        at-once         ! The answer comes when the records are stored, not before.
        better-dates    ! A record that comes again with a better timestamp is accepted.
        mixed           ! Of a batch with known and new records, the new ones are stored.
        lost-answer     ! After a lost answer, the same bytes under the same key are accepted.
        parts           ! After a lost answer, parts of a batch under new keys are stored once.
        order           ! Batches are accepted in any order of their sequences.
        id-of-device    - An id counts per device: the same id of another device is stored.
        gzip            ! A batch in gzip is accepted, and its records are stored.
        zstd            ! A batch in zstd is accepted, or answered with 415.
        accept-encoding - A 415 names the known encodings in Accept-Encoding.
        columns         ! After "columns": 1, a batch in columns is accepted, and has the ids of its rows.
        columns-refused ! Columns that cannot be expanded are answered with 400, 413, 415 or 422.
        slow            ! A body that comes slowly is accepted.
        beside          - While one body comes slowly, other batches are answered.
        cut             ! A body that ends early is not stored; the whole one is, under the same key.
        cut-gzip        ! A body that ends inside its gzip data is answered with 400 or 422.
        too-large       ! A body longer than max_body is answered with 413.
        64-mb           ! A body of 64 MB is answered with 413 or 2xx, not with a lost connection.
        inflated        ! A body that inflates to more than 64 MB is answered with 413 or 2xx.
        bad-record      ! A batch with a record without an id is answered with 400, 422 or rejected.
        rest            ! The good records of a refused batch are accepted in a batch of their own.
        json            ! A body that is not a JSON object is answered with 400 or 422.
        types           ! A member of a wrong type is refused (400, 422 or rejected).
        deep            ! Deeply nested JSON gets a final answer: 2xx, 400, 413 or 422.
        numbers         ! Numbers of any size get a final answer.
        texts           ! Texts with NUL, half a surrogate pair, quotes or paths get a final answer.
        jobs            ! A list of jobs has a tag and at most 64 jobs, each with an id, in 64 KiB.
        jobs-token      ! A list of jobs is refused for a wrong token (401 or 403).
        serves          ! After all of this, the next batch is accepted.
        """
}

/// Ends a check before it is passed.
enum CheckEnd: Error {
    /// The answer was not the expected one; says which was expected.
    case failed(String)
    /// The server does not offer this, or it cannot be seen from outside; says why.
    case skipped(String)
    /// Only the answers could say what is stored, and they do not.
    case unseen
}

/// The outcome of a check.
package struct ConformanceResult: Sendable {
    package enum Verdict: String, Sendable {
        case ok
        case failed = "FAILED"
        case skipped
    }

    package var check: ConformanceCheck
    package var verdict: Verdict
    /// Why it was skipped, or what was expected; "" if it passed.
    package var reason = ""
    /// The request of a failed check; "" otherwise.
    package var sent = ""
    /// The answer to it.
    package var got = ""
    /// Whether the server stores what it accepts could not be seen.
    package var isUnseen = false
}
