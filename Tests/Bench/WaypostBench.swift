// The bench: what Waypost costs on this machine, beside plain C doing the same.
import ArgumentParser

@main
struct WaypostBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost-bench",
        abstract: "Measure Waypost on this machine, beside plain C and curl doing the same.",
        subcommands: [
            QueueCommand.self, UploadCommand.self, AudioCommand.self, FleetCommand.self,
            ReceiverCommand.self, GrowthCommand.self, MonthCommand.self, AllCommand.self,
            WorkerCommand.self,
        ]
    )
}
