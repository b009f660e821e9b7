// `waypost led`: shows the gateway's state on the board's LED; systemd runs it as root on changes.
import ArgumentParser
import Daemon
import Status

struct LED: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the gateway's state on the board's LED.",
        shouldDisplay: false
    )

    @Flag(help: "Only record that the gateway has stopped, for the next call.") var stopped = false
    @Option(help: .hidden) var runtime = "/run/waypost"
    @Option(help: .hidden) var root = ""

    mutating func run() throws {
        let file = LEDFile(runtimeDirectory: runtime)
        guard !stopped else { return file.stopped() }
        try reporting("led") { try file.show(root: root) }
    }
}
