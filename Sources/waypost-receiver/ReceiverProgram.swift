// `waypost-receiver`: a reference ingest server.
import ArgumentParser
import Glibc

@main
struct ReceiverProgram: ParsableCommand {
    static let currentVersion = "0.1.0"

    static let configuration = CommandConfiguration(
        commandName: "waypost-receiver",
        abstract: "Receive batches from gateways and keep each record once, as files.",
        discussion:
            "Without a subcommand it serves; `waypost-receiver serve --help` has the options of that.",
        version: currentVersion,
        subcommands: [
            Serve.self, Codes.self, DeviceCommands.self, Index.self, ViewerCommands.self,
        ],
        // Its options may follow the program's name.
        defaultSubcommand: Serve.self
    )

    static func main() {
        // Files 0640 in folders 0750, SQLite's among them.
        umask(0o027)
        main(nil)
        expectPrinted()
    }
}
