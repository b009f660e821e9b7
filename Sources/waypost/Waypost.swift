// The entry point of the command line; each command has a file.
import ArgumentParser
import Configuration
import Host

@main
struct Waypost: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost",
        abstract: "A field gateway: records beacons, location and audio for a server.",
        discussion: """
            First steps on a device:
              sudo waypost enroll --endpoint https://HOST --code CODE
              waypost doctor
              waypost status
            """,
        version: currentVersion,
        groupedSubcommands: [
            CommandGroup(
                name: "Everyday",
                subcommands: [
                    Status.self, SyncCommand.self, SurveyCommand.self, ExportCommand.self, Put.self,
                    ListenCommand.self, AudioCommand.self,
                ]
            ),
            CommandGroup(
                name: "Setup",
                subcommands: [
                    Enroll.self, DoctorCommand.self, DevicesCommand.self, ScheduleCommand.self,
                    Config.self, Measure.self,
                ]
            ),
            CommandGroup(
                name: "Repair",
                subcommands: [Restart.self, Quarantine.self, Resend.self, Decode.self]
            ),
            CommandGroup(
                name: "Service",
                // All but the first are for units, the shell and other commands, and not in the help.
                subcommands: [
                    Run.self, Import.self, CardNote.self, LED.self, Hear.self, Complete.self,
                ]
            ),
        ]
    )

    /// Suggests the command that a person may have meant; ArgumentParser does so for options only.
    static func main() {
        let names = configuration.subcommands.map { $0._commandName } + ["help"]
        if let name = CommandLine.arguments.dropFirst().first, !name.hasPrefix("-"),
            !names.contains(name), let near = nearest(to: name, among: names)
        {
            Output.error("waypost: unknown command \(printable(name)); did you mean \(near)?")
            exit(withError: ExitCode.validationFailure)
        }
        main(nil)
    }
}
