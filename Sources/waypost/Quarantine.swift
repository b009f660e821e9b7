// `waypost quarantine`: records that the server refused.
import ArgumentParser
import Gateway
import Queue
import Streams

struct Quarantine: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Look at records the server refused, send them again, or drop them.",
        discussion: "Works with the daemon dead, too. Exit status: 0 done, 2 failed.",
        subcommands: [List.self, Requeue.self, Drop.self]
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the batches in quarantine, with the server's words."
        )

        @Flag(help: "One JSON object.") var json = false
        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            let client = try Quarantine.client(options)
            let batches = try Quarantine.reporting { try client.list() }
            if json { return Output.write(QuarantineList(batches).json + [10]) }
            Output.write(QuarantineList(batches).text)
        }
    }

    struct Requeue: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Put the records of a batch back, to be uploaded as a fresh one."
        )

        @Argument(help: "The batch's number or key, or all.") var id: String
        @OptionGroup var options: ConfigurationOptions

        mutating func run() throws {
            let client = try Quarantine.client(options)
            let id = id
            let reply = try Quarantine.reporting { try client.perform(.requeue(id: id)) }
            Output.write(
                "requeued: \(reply.changedRecords) records in \(reply.changedBatches) batches; "
                    + "`waypost sync` sends them now\n"
            )
        }
    }

    struct Drop: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete the records of a batch for good; they are counted as lost."
        )

        @Argument(help: "The batch's number or key.") var id: String
        @OptionGroup var options: ConfigurationOptions

        mutating func validate() throws {
            if id == "all" { throw ValidationError("drop takes one batch at a time") }
        }

        mutating func run() throws {
            let client = try Quarantine.client(options)
            let id = id
            let reply = try Quarantine.reporting { try client.perform(.drop(id: id)) }
            Output.write("dropped: \(reply.changedRecords) records\n")
        }
    }

    private static func client(_ options: ConfigurationOptions) throws -> QuarantineClient {
        QuarantineClient(try options.load().values, version: Waypost.currentVersion)
    }

    /// Errors in words, exit status 2.
    private static func reporting<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            Output.error("quarantine: \(error)")
            throw ExitCode(2)
        }
    }
}
