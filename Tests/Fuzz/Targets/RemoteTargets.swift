// Fuzz targets for the server's list of jobs, and for signatures and keys.
import FuzzSupport
import Host
import Minisign

@testable import Remote

enum RemoteTargets {
    static let all = [
        FuzzTarget(name: "jobs", run: jobs), FuzzTarget(name: "minisign", run: minisign),
    ]

    private static func jobs(_ input: [UInt8]) {
        guard let list = try? JobList(input) else { return }
        precondition(input.count <= JobList.maxBytes && list.jobs.count <= JobList.maxJobs)
        precondition(list.tag.isPrintable(atMost: 64))
        var history = JobHistory { _ in nil }
        for job in list.jobs {
            precondition(job.id.isPrintable(atMost: 64) && job.kind.unicodeScalars.count <= 65)
            if case .invalid(let why) = job.action {
                precondition(!why.unicodeScalars.contains(where: \.isInvisible))
            }
            let entry = history.next(job)
            history.record(entry)
            let read = JobHistory { $0 == entry.memo ? entry.text : nil }
            precondition(read.interrupted == [entry])
        }
    }
    /// The file as a public key, and as a signature of nothing, which no mutation can make.
    private static func minisign(_ input: [UInt8]) {
        let text = String(decoding: input, as: UTF8.self)
        if let key = try? MinisignPublicKey(text) {
            precondition((try? MinisignPublicKey(key.base64)) == key)
        }
        guard let signature = try? MinisignSignature(text) else { return }
        precondition(text.utf8.count <= MinisignSignature.maxBytes)
        precondition((try? MinisignSignature(signature.text))?.text == signature.text)
        guard let key = try? MinisignPublicKey(somebody) else { preconditionFailure("the key") }
        precondition((try? key.verify(signature, of: [])) == nil)
    }

    /// Made by `minisign -G`; its owner has signed only texts that are not empty.
    private static let somebody = "RWSDaK74og/G6hX42pyBq2KYcw3qLaOYoWXFekDK/oZ8ww7RlNZjVsuw"
}
