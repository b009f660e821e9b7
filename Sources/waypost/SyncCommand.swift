// `waypost sync`: uploads everything that is due now.
import ArgumentParser
import Daemon
import Glibc
import Host
import Setup
import Status
import Upload

struct SyncCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Upload everything due now.",
        discussion:
            """
            It also sends again what `waypost resend` asked for, portion by portion. It uploads in the quiet hours of upload.quiet, and respects upload.daily_budget unless \
            --over-budget is given.

            Exit status: 0 if no record accepted before is left pending or was quarantined by this sync, \
            1 if not, 2 if the gateway could not be asked.
            """ + examples("waypost sync", "waypost sync --wait 30")
    )

    @Option(help: .value("SECONDS", "Stop waiting after this time; the upload continues."))
    var wait = 300
    @Flag(help: "Send everything, whatever is left of upload.daily_budget.")
    var overBudget = false
    @OptionGroup var options: ConfigurationOptions

    /// A year in seconds, so that a deadline cannot overflow.
    private static let longest = 31_536_000

    /// The time for the first status report of a sync; a gateway that is silent for longer hangs.
    private static let firstWord = Duration.seconds(3)

    /// The pause before a gateway that salvages a database is asked again.
    private static let pause = Duration.milliseconds(500)

    mutating func run() throws {
        let configuration = try options.loadToAsk()
        let deadline = SystemClock().now() + .seconds(min(max(1, wait), Self.longest))
        var (reply, last) = try sync(configuration, until: deadline)
        // Records salvaged from a damaged database are uploaded, too, as soon as they are known.
        while reply?.sync?.isSalvaging == true, SystemClock().now() + Self.pause < deadline {
            usleep(UInt32(Self.pause.milliseconds * 1000))
            (reply, last) = try sync(configuration, until: deadline)
        }
        // A sync resends a portion. A portion in which nothing was sent again ends this.
        while let before = reply?.sync?.resending, reply?.sync?.quarantined == 0,
            SystemClock().now() < deadline
        {
            let next = try sync(configuration, until: deadline)
            guard let result = next.0?.sync else { break }
            (reply, last) = (next.0, next.1 ?? last)
            if result.resending ?? 0 >= before { break }
        }
        if Output.isTerminal { Output.write("\r\u{1B}[K") }
        if let last { Output.write(Self.summary(last)) }
        throw end(reply, last)
    }

    /// Starts a sync on the gateway, and follows it to its end.
    private func sync(
        _ configuration: Configuration,
        until deadline: BootInstant
    ) throws -> (ControlReply?, StatusReport?) {
        let client: ControlClient
        var reply: ControlReply?
        do { client = try ControlClient(configuration) } catch {
            throw failure("\(error)", status: 2)
        }
        do {
            let request = ControlRequest(.sync, overBudget ? ControlRequest.overBudget : nil)
            let left = deadline - SystemClock().now()
            reply = try client.ask(request, timeout: min(left, Self.firstWord))
        } catch let refusal as ControlError {
            // The gateway may have received the request and begun.
            throw client.isClosed ? Self.lost(client) : failure("\(refusal)", status: 2)
        } catch {
            throw failure("sync: \(error)", status: 2)
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

    /// Reports that the gateway ended before the sync did.
    private static func lost(_ client: ControlClient) -> ExitCode {
        if Output.isTerminal { Output.write("\r\u{1B}[K") }
        return failure("not finished: \(client.lost)", status: 1)
    }

    /// Reports what is left, and returns the exit status.
    private func end(_ reply: ControlReply?, _ last: StatusReport?) -> ExitCode {
        guard let sync = reply?.sync else {
            return failure(
                "not finished in \(wait) s; the upload continues, see `waypost status`",
                status: 1
            )
        }
        if sync.quarantined > 0 {
            Output.error(
                "\(counted(sync.quarantined, "record")) rejected permanently; `waypost quarantine list` shows why"
            )
        }
        switch sync.left {
        case nil where sync.isSalvaging == true:
            Output.error(
                "a damaged database was quarantined and is being read; run this again in a minute"
            )
        case nil:
            let pending = last?.pending ?? 0
            Output.error(
                pending > 0
                    ? "\(counted(pending, "record")) pending; `waypost status` says why"
                    : "it is unknown whether records are left; `waypost status` says why"
            )
        case 0?: break
        case let left?: Output.error("\(counted(left, "record")) accepted before, still pending")
        }
        if let left = sync.resending {
            Output.error("\(counted(left, "record")) still to be sent again; the next syncs do it")
        }
        let isHeld = last?.streams.values.contains { $0.waitsFor == UploadReport.budgetObstacle }
        if isHeld == true, let budget = last?.upload.budget {
            Output.error(
                "upload.daily_budget has no room for them before \(budget.renewsAt.rfc3339); `waypost sync --over-budget` does not wait"
            )
        }
        return ExitCode(reply?.done == true ? 0 : 1)
    }

    private func showProgress(_ report: StatusReport) {
        guard Output.isTerminal else { return }
        let current = report.streams.first { $0.value.inFlight > 0 }
        let now = current.map { ", sending \($0.value.inFlight) of \($0.key)" } ?? ""
        Output.write("\r\u{1B}[K\(counted(report.pending, "record")) pending\(now)")
    }

    private static func summary(_ report: StatusReport) -> String {
        report.streams.sorted { $0.key < $1.key }.map { name, stream in
            var line = "\(name): \(stream.uploaded) uploaded, \(stream.pending) pending"
            if stream.quarantined > 0 { line += ", \(stream.quarantined) in quarantine" }
            if let error = stream.lastError {
                line += ": \(Failure(error.message, code: error.code))"
            } else if let obstacle = stream.waitsFor {
                line += ", waits: \(obstacle)"
            }
            return line + "\n"
        }.joined()
    }
}
