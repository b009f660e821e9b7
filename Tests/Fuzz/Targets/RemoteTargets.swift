// A fuzz target for the server's list of jobs.
import FuzzSupport
import Host

@testable import Remote

enum RemoteTargets {
    static let all = [FuzzTarget(name: "jobs", run: jobs)]

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
}
