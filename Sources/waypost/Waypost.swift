// The command line: one file a command, each thin.
import ArgumentParser

@main
struct Waypost: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost",
        abstract: "A field gateway: beacons, location and sound to a server, whatever happens.",
        version: currentVersion,
        subcommands: [
            Run.self, Status.self, SyncCommand.self, DoctorCommand.self, DevicesCommand.self,
            Quarantine.self,
            Resend.self, SurveyCommand.self, Restart.self, Put.self, ExportCommand.self,
            Enroll.self,
            Decode.self, Config.self, Import.self, LED.self, Hear.self,
        ]
    )
}
