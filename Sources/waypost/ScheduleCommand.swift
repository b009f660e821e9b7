// `waypost schedule`: shows what the schedules will record.
import ArgumentParser
import Audio
import Beacons
import Host
import JSON
import Schedule
import Setup
import Status

struct ScheduleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule",
        abstract: "Show what will be recorded in the next days, and the sun's times.",
        discussion:
            "Reads the configuration; a running gateway gives the position of its GNSS receiver."
            + examples("waypost schedule", "waypost schedule --days 30 --json | jq .sources.audio")
    )

    @Option(help: .value("N", "Number of days, from today: 1 to 366.")) var days = 3
    @Flag(help: "One JSON object.") var json = false
    @OptionGroup var options: ConfigurationOptions

    func validate() throws {
        guard (1...366).contains(days) else { throw ValidationError("--days takes 1 to 366") }
    }

    mutating func run() throws {
        let configuration = try options.loadToAsk()
        let schedules = configuration.schedules
        var sources: [(name: SourceName, schedule: Schedule)] = []
        if configuration.beacons.isEnabled { sources.append((.beacons, schedules.beacons)) }
        if configuration.audio.isEnabled { sources.append((.audio, schedules.audio)) }
        let place = position(configuration) ?? schedules.fixed
        let now = SystemClock().wall()
        if json {
            let listing = ScheduleListing(sources, place, days: days, now: now)
            Output.write(encodedJSON(listing) + [10])
        } else {
            let offset = schedules.offset
            let screen = ScheduleScreen(sources, place, days: days, now: now, offset: offset)
            Output.write(screen.text)
        }
    }

    /// The position that a running gateway uses; nil if none runs or it needs none.
    private func position(_ configuration: Configuration) -> SitePosition? {
        let client = try? ControlClient(configuration, patience: ControlClient.statusPatience)
        return (try? client?.status())?.schedule.flatMap {
            SitePosition(latitude: $0.latitude, longitude: $0.longitude)
        }
    }
}
