// `waypost-receiver index`: the index behind the page, made anew from the files and checked against them.
import ArgumentParser
import Receiver

struct Index: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "The index behind the page: made of the files alone.",
        discussion: "The receiver keeps it up by itself, and may run meanwhile.",
        subcommands: [Rebuild.self, Check.self]
    )

    struct Rebuild: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Make the index anew from the files; what was archived away is not in it then."
        )

        @OptionGroup var place: DataLocation

        func run() throws {
            try place.expectThere()
            let done = try place.orFail { try IndexCheck.rebuild(directory: place.data) }
            print("\(done.records) records of \(done.files) files are in the index")
            guard let first = done.unread.first else { return }
            throw place.failure("\(done.unread.count) files could not be read: \(first)")
        }
    }

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Compare the index with the files; exit status 1 where they differ."
        )

        @OptionGroup var place: DataLocation

        func run() throws {
            try place.expectThere()
            guard let report = try place.orFail({ try IndexCheck.run(directory: place.data) })
            else {
                throw place.failure("there is no index of this version; `index rebuild` makes one")
            }
            print("\(report.files) files with \(report.records) records were compared")
            if report.archived > 0 {
                print("\(report.archived) files were archived away; their rows stay")
            }
            if report.behind > 0 {
                print("\(report.behind) bytes are not read yet; a receiver that runs does it")
            }
            for difference in report.differences { print(difference) }
            guard report.differenceCount == 0 else {
                throw place.failure(
                    "\(report.differenceCount) rows differ; `index rebuild` mends it"
                )
            }
        }
    }
}
