// Requests about quarantine, resends and surveys: `QueueRequestHandler` answers them in the daemon,
// and `QueueQuestions` asks them in a command's process.
import Glibc
import Host
import Queue
import Records
package import Setup

/// Executes a request on the queue; blocks until the writer has done it.
struct QueueRequestHandler: Sendable {
    let queue: Queue
    let configuration: Configuration

    func answer(_ request: ControlRequest) -> ControlReply {
        let argument = request.argument ?? ""
        var reply = ControlReply(done: true)
        do {
            switch request.command {
            case .quarantineList:
                let after = Int64(argument) ?? 0
                reply.quarantine = try QuarantinePage(try queue.reader(), after, configuration)
            case .requeue: reply.changed = try QuarantineHandler(queue: queue).requeue(argument)
            case .drop: reply.changed = try QuarantineHandler(queue: queue).drop(argument)
            case .resend:
                let handler = ResendHandler(queue: queue, configuration: configuration)
                reply.changed = try handler.resend(argument)
            case .audioMark:
                let chunks = try AudioMarkRequest(argument: argument).mark(in: queue)
                reply.changed = QuarantineChange(records: chunks)
            case .surveyStart: reply.survey = try SurveyHandler(queue: queue).start(argument)
            case .surveyStop: reply.survey = try SurveyHandler(queue: queue).stop()
            case .surveyList: reply.survey = try SurveyReply(try queue.reader())
            case .status, .watch, .sync, .reload, .restart, .measure:
                reply = ControlReply(error: "\(request.command.rawValue) is not a queue command")
            }
        } catch let refusal as SurveyError {
            return ControlReply(error: "\(refusal)")
        } catch let failure as Failure {
            return ControlReply(error: failure.message)
        } catch {
            return ControlReply(error: "not done: \(error)")
        }
        return reply
    }
}

/// Sends a command's requests to the daemon, or reads the database itself if no daemon runs.
///
/// Only the daemon changes the queue.
package final class QueueQuestions {
    let configuration: Configuration

    package init(_ configuration: Configuration) { self.configuration = configuration }

    /// False before the gateway's first start: there is no database, and never was a status.
    package var hasRecorded: Bool {
        access(configuration.databasePath, F_OK) == 0 || errno != ENOENT
            || Snapshot.isThere(configuration)
    }

    /// Returns all batches in quarantine, oldest first.
    ///
    /// Throws a Failure or ControlError that says what to do.
    package func quarantine() throws -> [QuarantinePage.Entry] {
        guard let client = try daemon() else {
            guard hasRecorded else { return [] }
            return try offline { reader in
                try allPages { try QuarantinePage(reader, $0 ?? 0, configuration) }
            }
        }
        return try allPages { last in
            let request = ControlRequest(.quarantineList, last.map { "\($0)" })
            return try client.ask(request, timeout: .seconds(60)).quarantine ?? QuarantinePage()
        }
    }

    /// Collects the pages that `page` returns for the number of the last batch before them.
    private func allPages(
        _ page: (Int64?) throws -> QuarantinePage
    ) rethrows -> [QuarantinePage.Entry] {
        var all: [QuarantinePage.Entry] = []
        while true {
            let page = try page(all.last?.number)
            all += page.batches
            if !page.more || page.batches.isEmpty { return all }
        }
    }

    /// Returns the running survey.
    package func survey() throws -> SurveyReply {
        guard let client = try daemon() else {
            return hasRecorded ? try offline { try SurveyReply($0) } : SurveyReply()
        }
        return try client.ask(.init(.surveyList), timeout: .seconds(60)).survey ?? SurveyReply()
    }

    /// Has the daemon change something; a large survey may take minutes.
    package func change(_ request: ControlRequest) throws -> ControlReply {
        do {
            return try ControlClient.answering(configuration).ask(request, timeout: .seconds(600))
        } catch ControlError.gone {
            throw Failure(
                "only the running gateway changes its queue, and it is not running; "
                    + "`systemctl start waypost`, then try again"
            )
        }
    }

    /// Connects to the daemon; nil if none runs.
    private func daemon() throws -> ControlClient? {
        do {
            return try ControlClient.answering(configuration)
        } catch ControlError.gone {
            return nil
        }
    }

    private func offline<Value>(_ body: (Reader) throws -> Value) throws -> Value {
        let path = configuration.databasePath
        do {
            return try body(try Reader(path: path))
        } catch {
            let unread = "\(error); waypost is not running, and its queue is expected at this path"
            throw DatabaseRights.refusal(path, after: error) ?? Failure(unread)
        }
    }
}
