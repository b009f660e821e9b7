// `waypost hear`: listens to a microphone; `waypost doctor` starts it as the service's user.
import ArgumentParser
import Daemon
import Field

struct Hear: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Listen to a microphone for one second, for `waypost doctor`.",
        shouldDisplay: false
    )

    @Option(help: "A capture device; of several, uses the first that opens.")
    var device: [String] = []
    @Option(help: "Sampling rate.") var rate: Int
    @Option(help: "The channel, counted from 1.") var channel: Int?

    mutating func run() {
        AudioReport.send(devices: device, rate: rate, channel: channel) { Output.write($0) }
    }
}
