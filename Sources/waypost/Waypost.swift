// The entry point of the command line; each command has a file.
import ArgumentParser

@main
struct Waypost: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost",
        abstract: "A field gateway: records beacons, location and audio for a server.",
        version: currentVersion,
        subcommands: [
            Run.self, Status.self, SyncCommand.self, DoctorCommand.self, DevicesCommand.self,
            Quarantine.self, Resend.self, SurveyCommand.self, Restart.self, Put.self,
            ExportCommand.self, Enroll.self, Decode.self, Config.self, Import.self, LED.self,
            Hear.self,
        ]
    )
}
