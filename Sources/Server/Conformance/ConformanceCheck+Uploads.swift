// Batches that are well-formed: compression, repeats, order, columns.
import HTTP
import Host

extension ConformanceCheck {
    static let uploads: [String: Body] = [
        "identity": {
            let answer = try $0.upload($0.batch())
            try $0.expectAccepted(answer)
            $0.first = answer
            $0.jobs = answer.reply.jobs ?? $0.jobs
        },
        "answer-json": {
            guard [.json, .blank].contains(try first($0).reply.form) else {
                throw CheckEnd.failed("JSON or nothing")
            }
        },
        "answer-denies": {
            let reply = try first($0).reply
            guard !reply.saysNo, reply.rejected == 0, reply.accounts(for: 3) else {
                throw CheckEnd.failed("no denial of a good batch")
            }
        },
        "fresh": {
            guard try first($0).number("duplicates") ?? 0 == 0 else {
                throw CheckEnd.failed("duplicates: 0")
            }
        },
        "id-again": {
            guard try first($0).number("duplicates") != nil else { throw CheckEnd.unseen }
            let batch = $0.batch()
            try $0.expectAccepted($0.upload(batch))
            $0.pause()
            let answer = try $0.upload(batch.again())
            try $0.expectAccepted(answer)
            guard answer.number("duplicates") == 3 else { throw CheckEnd.failed("duplicates: 3") }
            $0.seesDuplicates = true
        },
        "key-again": {
            let batch = $0.batch()
            try $0.expectAccepted($0.upload(batch))
            try $0.expectAccepted($0.retry(batch))
            $0.repeatsKeys = true
        },
        "at-once": {
            try $0.needsDuplicates()
            let batch = $0.batch()
            try $0.expectAccepted($0.upload(batch))
            try $0.expectKnown(batch, afterPause: false)
        },
        "better-dates": {
            var batch = $0.batch()
            batch.time = "2026-11-21T04:30:07.123Z"
            try $0.expectAccepted($0.upload(batch))
            batch.time = "2026-11-21T04:30:09.456Z"
            try $0.expectKnown(batch)
        },
        "mixed": {
            try $0.needsDuplicates()
            let batch = $0.batch()
            try $0.expectAccepted($0.upload(batch.again(0..<1)))
            $0.pause()
            try $0.expectNew($0.upload(batch), 2)
            try $0.expectKnown(batch)
        },
        "lost-answer": {
            let batch = try lost($0)
            $0.repeatsKeys = false
            try $0.expectAccepted($0.retry(batch))
            $0.repeatsKeys = true
        },
        "parts": {
            try $0.needsDuplicates()
            let batch = try lost($0)
            try $0.expectAccepted($0.retry(batch))
            try $0.expectKnown(batch.again(0..<1))
            try $0.expectKnown(batch.again(1..<3))
        },
        "order": {
            var answers: [Answer] = []
            for sequence in [101, 11, 51] {
                var batch = $0.batch()
                batch.firstSequence = sequence
                answers.append(try $0.upload(batch))
            }
            for answer in answers { try $0.expectAccepted(answer) }
            for answer in answers { try $0.expectNew(answer, 3) }
        },
        "id-of-device": {
            try $0.needsDuplicates()
            var batch = $0.batch()
            try $0.expectAccepted($0.upload(batch))
            batch.device += "-c"
            let answer = try $0.upload(batch.again())
            guard answer.status != 403 else { throw CheckEnd.skipped("the token is of one device") }
            try $0.expectNew(answer, 3)
        },
        "gzip": {
            let batch = $0.batch()
            let answer = try $0.upload(batch, .gzip)
            $0.inflatesGzip = answer.isAccepted
            try $0.expectNew(answer, 3)
            try $0.expectKnown(batch)
        },
        "zstd": {
            let batch = $0.batch()
            let answer = try $0.upload(batch, .zstd)
            if answer.status == 415 { return }
            try $0.expectNew(answer, 3)
            try $0.expectKnown(batch)
        },
        "accept-encoding": {
            let batch = $0.batch()
            let answer = try $0.upload(RequestBody(batch.rows), "br", of: batch, coding: "br")
            try $0.expect(answer, 415)
            guard !answer.acceptEncoding.isEmpty else { throw CheckEnd.failed("Accept-Encoding") }
        },
        "columns": {
            try needsColumns($0)
            let batch = $0.batch()
            let answer = try $0.upload(RequestBody(batch.columns), "columns", of: batch)
            try $0.expectNew(answer, 3)
            try $0.expectKnown(batch)
        },
        "columns-refused": {
            try needsColumns($0)
            let batch = $0.batch()
            let answer = try $0.upload(RequestBody(batch.brokenColumns), "columns", of: batch)
            try $0.expect(answer, 400, 413, 415, 422)
        },
    ]

    private static func first(_ trial: ConformanceTrial) throws -> Answer {
        if let answer = trial.first { return answer }
        throw CheckEnd.skipped("no batch was accepted")
    }

    private static func needsColumns(_ trial: ConformanceTrial) throws {
        guard try first(trial).reply.takesColumns else {
            throw CheckEnd.skipped("the server does not offer columns")
        }
    }

    /// Sends a whole batch and leaves without its answer.
    private static func lost(_ trial: ConformanceTrial) throws -> TrialBatch {
        try trial.needs(trial.repeatsKeys, "the server refuses a repeated key")
        let batch = trial.batch()
        try PartialUpload(batch, trial).send(eighths: 0..<8)
        trial.pause()
        return batch
    }
}
