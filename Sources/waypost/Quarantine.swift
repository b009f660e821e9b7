// `waypost quarantine`: lists, requeues and drops records that the server rejected.
import ArgumentParser
import Daemon
import Host
import Status

struct Quarantine: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List records the server rejected, send them again, or drop them.",
        discussion: "Works without a running daemon, too. Exit status: 0 done, 2 failed."
            + examples("waypost quarantine list", "waypost quarantine requeue all"),
        subcommands: [List.self, Requeue.self, Drop.self]
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the batches in quarantine, with the server's message.",
            discussion: examples("waypost quarantine list")
        )

        @Flag(help: "One JSON object.") var json = false
        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            let queue = QueueQuestions(try options.loadOrAsk().values)
            let batches = try reporting("quarantine") { try queue.quarantine() }
            if json { return Output.write(QuarantineList(batches).json + [10]) }
            Output.write(queue.hasRecorded ? QuarantineList(batches).text : nothingRecorded)
        }
    }

    struct Requeue: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Put the records of a batch back, to be uploaded in a new one.",
            discussion: examples("waypost quarantine requeue 3", "waypost quarantine requeue all")
        )

        @Argument(help: .value("ID", "The batch's number or key, or all.")) var id: String
        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            let queue = QueueQuestions(try options.loadOrAsk().values)
            let request = ControlRequest(.requeue, id)
            let changed = try reporting("quarantine") { try queue.change(request).changed }
            Output.write(
                "requeued: \(counted(changed?.records ?? 0, "record")) in "
                    + "\(counted(changed?.batches ?? 0, "batch", "batches")); "
                    + "`waypost sync` sends them now\n"
            )
        }
    }

    struct Drop: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete the records of a batch for good; they are counted as lost.",
            discussion: examples("waypost quarantine drop 3")
        )

        @Argument(help: .value("ID", "The batch's number or key.")) var id: String
        @OptionGroup var options: ConfigurationOptions

        mutating func validate() throws {
            if id == "all" { throw ValidationError("drop takes one batch at a time") }
        }

        mutating func run() throws {
            let queue = QueueQuestions(try options.loadOrAsk().values)
            let request = ControlRequest(.drop, id)
            let changed = try reporting("quarantine") { try queue.change(request).changed }
            Output.write("dropped: \(changed?.records ?? 0) records\n")
        }
    }
}
