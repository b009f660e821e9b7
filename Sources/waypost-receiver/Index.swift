// `waypost-receiver index`: rebuilds and checks the index behind the page.
import ArgumentParser
import Host
import ServerIndex

struct Index: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check or rebuild the page's index, which is made from the files.",
        discussion: "The receiver updates it by itself, and may be running.",
        subcommands: [Rebuild.self, Check.self]
    )

    struct Rebuild: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Rebuild the index from the files; files archived elsewhere are then missing in it."
        )

        @OptionGroup var place: DataLocation

        func run() throws {
            try place.expectThere()
            let done = try place.orFail { try IndexCheck.rebuild(directory: place.data) }
            print("indexed \(counted(done.records, "record")) of \(counted(done.files, "file"))")
            guard let first = done.unread.first else { return }
            throw place.failure("\(counted(done.unread.count, "file")) could not be read: \(first)")
        }
    }

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Compare the index with the files; exit status 1 if they differ."
        )

        @OptionGroup var place: DataLocation

        func run() throws {
            try place.expectThere()
            guard let report = try place.orFail({ try IndexCheck.check(directory: place.data) })
            else {
                throw place.failure("there is no index of this version; run `index rebuild`")
            }
            print(
                "compared \(counted(report.files, "file")) with \(counted(report.records, "record"))"
            )
            if report.archived > 0 {
                print("archived away: \(counted(report.archived, "file")); their rows stay")
            }
            if report.behind > 0 {
                print("\(report.behind) bytes are not read yet; a running receiver reads them")
            }
            for difference in report.differences { print(difference) }
            guard report.differenceCount == 0 else {
                throw place.failure(
                    "\(report.differenceCount) rows differ; run `index rebuild`"
                )
            }
        }
    }
}
