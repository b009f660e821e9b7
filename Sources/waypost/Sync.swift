// `waypost sync`: upload everything that is due, now.
import ArgumentParser
import Gateway
import Host

struct Sync: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Upload everything due now.",
        discussion:
            "Exit status: 0 when nothing that was there before is left pending or was set aside, 1 otherwise."
    )

    @Option(help: "Give up waiting after so many seconds; the upload goes on.")
    var wait = 300
    @OptionGroup var options: ConfigurationOptions

    /// A year of seconds: a clock has no room for any number.
    private static let longest = 31_536_000

    mutating func run() throws {
        let configuration = try options.load().values
        let path = Gateway.socketPath(configuration)
        guard let client = ControlClient(path: path), client.send(.sync) else {
            Output.error(
                "waypost is not running (nothing answers at \(path)); `systemctl start waypost`"
            )
            throw ExitCode(2)
        }
        var last: StatusReport?
        var isDone: Bool?
        let deadline = SystemClock().now() + .seconds(min(max(1, wait), Self.longest))
        while isDone == nil, let line = client.line(timeout: deadline - SystemClock().now()) {
            if let report = StatusReport(json: line) {
                last = report
                showProgress(report)
            } else {
                isDone = String(decoding: line, as: UTF8.self).contains("true")
            }
        }
        if Output.isTerminal { Output.write("\r\u{1B}[K") }
        if let last { Output.write(Self.summary(last)) }
        guard isDone != nil else {
            Output.error(
                "not finished in \(wait) s; the upload goes on, `waypost status` follows it"
            )
            throw ExitCode(1)
        }
        throw ExitCode(isDone == true ? 0 : 1)
    }

    private func showProgress(_ report: StatusReport) {
        guard Output.isTerminal else { return }
        let pending = report.streams.values.reduce(0) { $0 + $1.pending }
        let current = report.streams.first { $0.value.inFlight > 0 }
        let now = current.map { ", sending \($0.value.inFlight) of \($0.key)" } ?? ""
        Output.write("\r\u{1B}[K\(pending) records pending\(now)")
    }

    private static func summary(_ report: StatusReport) -> String {
        report.streams.sorted { $0.key < $1.key }.map { name, stream in
            var line = "\(name): \(stream.uploaded) uploaded, \(stream.pending) pending"
            if stream.quarantined > 0 { line += ", \(stream.quarantined) in quarantine" }
            if let error = stream.lastError {
                line += ": \([error.code, error.message].compactMap { $0 }.joined(separator: " "))"
            }
            return line + "\n"
        }.joined()
    }
}
