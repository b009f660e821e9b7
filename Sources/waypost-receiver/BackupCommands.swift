// `waypost-receiver backup` and `waypost-receiver restore`.
import ArgumentParser
import Glibc
import ServerArchive

struct BackupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy what is new to a backup; the server may be running.",
        discussion: """
            The first run copies everything, each later one what was stored since. An interrupted run leaves the \
            backup before usable.
            """
    )

    @Argument(help: ArgumentHelp("The backup's folder; created if needed.", valueName: "dir"))
    var folder: String
    @OptionGroup var place: DataLocation

    func run() throws {
        try place.expectServed()
        let line = try place.orFail {
            try DataOwner.become(of: place.data, creating: folder)
            return try Backup(of: place.data, in: folder).run()
        }
        print(line)
    }
}

struct RestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Copy a backup into the data folder of a stopped server.",
        discussion: "It refuses a folder that has records which the backup does not have."
    )

    @Argument(help: ArgumentHelp("The backup's folder.", valueName: "dir")) var folder: String
    @OptionGroup var place: DataLocation

    func run() throws {
        try place.expectConfiguration()
        // Otherwise it would be root's, and the service could not write there.
        if place.given == nil, place.data.hasPrefix("/"), geteuid() == 0,
            access(place.data, F_OK) != 0
        {
            throw place.failure(
                "there is no folder \(place.data); create it for the service's user, such as with: sudo install "
                    + "-d -o waypost-receiver -g waypost-receiver -m 0750 \(place.data)"
            )
        }
        let lines = try place.orFail {
            try DataOwner.become(of: place.data)
            return try Restore(folder, to: place.data).run()
        }
        for line in lines { print(line) }
    }
}
