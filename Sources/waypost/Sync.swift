// `waypost sync`: upload everything that is due, now.
import ArgumentParser
import Gateway
import Glibc
import Host
import Upload

struct SyncCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Upload everything due now.",
        discussion:
            """
            It does not wait for the end of upload.quiet, and keeps to upload.daily_budget unless told otherwise.

            Exit status: 0 when nothing that was there before is left pending or was set aside, 1 otherwise.
            """
    )

    @Option(help: "Give up waiting after so many seconds; the upload goes on.")
    var wait = 300
    @Flag(help: "Send everything, whatever is left of upload.daily_budget.")
    var overBudget = false
    @OptionGroup var options: ConfigurationOptions

    /// A year of seconds: a clock has no room for any number.
    private static let longest = 31_536_000

    /// A gateway reports the status as soon as a sync begins; one that says nothing for so long hangs.
    private static let firstWord = Duration.seconds(3)

    /// Until a gateway that salvages is asked again.
    private static let pause = Duration.milliseconds(500)

    mutating func run() throws {
        let configuration = try options.loadToAsk()
        let deadline = SystemClock().now() + .seconds(min(max(1, wait), Self.longest))
        var (reply, last) = try sync(configuration, until: deadline)
        // What is in a damaged database goes out, too, as soon as it is known.
        while reply?.sync?.isSalvaging == true, SystemClock().now() + Self.pause < deadline {
            usleep(UInt32(Self.pause.milliseconds * 1000))
            (reply, last) = try sync(configuration, until: deadline)
        }
        if Output.isTerminal { Output.write("\r\u{1B}[K") }
        if let last { Output.write(Self.summary(last)) }
        throw end(reply, last)
    }

    /// Has the gateway upload, and follows it to its end.
    private func sync(
        _ configuration: Configuration,
        until deadline: BootInstant
    ) throws -> (ControlReply?, StatusReport?) {
        let client: ControlClient
        var reply: ControlReply?
        do { client = try ControlClient(configuration) } catch { throw Self.failed("\(error)") }
        do {
            let request = ControlRequest(.sync, overBudget ? ControlRequest.overBudget : nil)
            let left = deadline - SystemClock().now()
            reply = try client.ask(request, timeout: min(left, Self.firstWord))
        } catch let refusal as ControlRefusal {
            // It had the request, and may have begun.
            throw client.isClosed ? Self.lost(client) : Self.failed("\(refusal)")
        } catch {
            throw Self.failed("sync: \(error)")
        }
        var last: StatusReport?
        while let now = reply {
            last = now.status ?? last
            if now.done != nil { break }
            now.status.map { showProgress($0) }
            reply = client.next(timeout: deadline - SystemClock().now())
            if reply == nil, client.isClosed { throw Self.lost(client) }
        }
        return (reply, last)
    }

    /// The gateway could not be asked, or would not do it.
    private static func failed(_ why: String) -> ExitCode {
        Output.error(why)
        return ExitCode(2)
    }

    /// The gateway ended before the sync did.
    private static func lost(_ client: ControlClient) -> ExitCode {
        if Output.isTerminal { Output.write("\r\u{1B}[K") }
        Output.error("not finished: \(client.lost)")
        return ExitCode(1)
    }

    /// Says what is not done.
    private func end(_ reply: ControlReply?, _ last: StatusReport?) -> ExitCode {
        guard let sync = reply?.sync else {
            Output.error(
                "not finished in \(wait) s; the upload goes on, `waypost status` follows it"
            )
            return ExitCode(1)
        }
        if sync.quarantined > 0 {
            Output.error(
                "\(sync.quarantined) records were refused for good; `waypost quarantine list` shows why"
            )
        }
        switch sync.left {
        case nil where sync.isSalvaging == true:
            Output.error("a damaged database was set aside and is read now; ask again in a minute")
        case nil:
            let pending = last?.pending ?? 0
            Output.error(
                pending > 0
                    ? "\(pending) records wait; `waypost status` says why"
                    : "whether anything is left is not known; `waypost status` says why"
            )
        case 0?: break
        case let left?: Output.error("\(left) records that were there before still wait")
        }
        let isHeld = last?.streams.values.contains { $0.waitsFor == UploadReport.budgetObstacle }
        if isHeld == true, let budget = last?.upload.budget {
            Output.error(
                "upload.daily_budget has no room for them before \(budget.renewsAt); `waypost sync --over-budget` does not wait"
            )
        }
        return ExitCode(reply?.done == true ? 0 : 1)
    }

    private func showProgress(_ report: StatusReport) {
        guard Output.isTerminal else { return }
        let current = report.streams.first { $0.value.inFlight > 0 }
        let now = current.map { ", sending \($0.value.inFlight) of \($0.key)" } ?? ""
        Output.write("\r\u{1B}[K\(report.pending) records pending\(now)")
    }

    private static func summary(_ report: StatusReport) -> String {
        report.streams.sorted { $0.key < $1.key }.map { name, stream in
            var line = "\(name): \(stream.uploaded) uploaded, \(stream.pending) pending"
            if stream.quarantined > 0 { line += ", \(stream.quarantined) in quarantine" }
            if let error = stream.lastError {
                line += ": \([error.code, error.message].compactMap { $0 }.joined(separator: " "))"
            } else if let obstacle = stream.waitsFor {
                line += ", waits: \(obstacle)"
            }
            return line + "\n"
        }.joined()
    }
}
