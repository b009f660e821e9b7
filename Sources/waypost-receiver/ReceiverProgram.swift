// `waypost-receiver`: a reference ingest server.
import ArgumentParser
import Glibc

@main
struct ReceiverProgram: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost-receiver",
        abstract: "Receive batches from gateways and keep each record once, as files.",
        discussion:
            "Without a subcommand it serves; see `waypost-receiver serve --help` for the options.",
        version: currentVersion,
        subcommands: [
            Serve.self, Codes.self, DeviceCommands.self, Index.self, ViewerCommands.self,
            LabelCommands.self, JobCommand.self, AudioJobCommand.self, ReportCommand.self,
            SettingsCommands.self,
            ConfigCommand.self, SetupCommand.self,
            BackupCommand.self, RestoreCommand.self, PruneCommand.self, ExportCommands.self,
            ConformanceCommand.self,
        ],
        // The options of `serve` may follow the program's name.
        defaultSubcommand: Serve.self
    )

    static func main() {
        // Files get mode 0640 and folders 0750, also those of SQLite.
        umask(0o027)
        var command = ServeArguments(Array(CommandLine.arguments.dropFirst())).command(
            of: Self.self
        )
        do { try command.run() } catch { exit(withError: error) }
        expectPrinted()
    }
}
