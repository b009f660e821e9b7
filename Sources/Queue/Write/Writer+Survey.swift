// Stores surveys: their start, track, end and report.
import Host
import Records
import SQLite

extension Writer {
    /// Begins a survey: it includes every sighting accepted from now on.
    ///
    /// Throws `SurveyError` while another one is in progress.
    package func startSurvey(_ name: String) throws {
        if let survey { throw SurveyError.isOpen(survey.name) }
        try begin()
        let survey = OpenSurvey(
            name: name,
            start: clock.stamp(),
            startBoot: boot,
            first: memory.live[.beacons]?.next ?? 1
        )
        try connection.execute("DELETE FROM survey_track")
        memory.places = 0
        try insert(survey)
    }

    /// Ends the survey; its sightings stay until `finishSurvey` has its report.
    ///
    /// Throws `SurveyError` if none is in progress. Returns an already ended survey unchanged.
    package func endSurvey() throws -> OpenSurvey {
        guard var survey else { throw SurveyError.noneIsOpen }
        guard survey.isOpen else { return survey }
        try begin()
        let end = OpenSurvey.End(
            stamp: clock.stamp(),
            boot: boot,
            last: (memory.live[.beacons]?.next ?? 1) - 1
        )
        try connection.run(
            "UPDATE open_survey SET last=?, end_boot=?, end_boottime=?, end_wall=?",
            end.last,
            end.boot,
            end.stamp.boot.milliseconds,
            end.stamp.wall.milliseconds
        )
        survey.end = end
        self.survey = survey
        return survey
    }

    /// Stores the record of a survey that has ended.
    package func finishSurvey(report: String) throws {
        guard let survey, let end = survey.end else { return }
        try begin()
        try insert(
            PlainRow(
                Survey(
                    name: survey.name,
                    start: survey.start,
                    startBoot: survey.startBoot,
                    end: end.stamp,
                    report: report
                )
            ),
            boot: end.boot
        )
        try connection.execute("DELETE FROM open_survey; DELETE FROM survey_track")
        memory.places = 0
        self.survey = nil
    }

    /// Adds a fix to the track of the survey in progress.
    func insert(place fix: Fix) throws {
        guard let survey, survey.isOpen else { return }
        try begin()
        if memory.places >= maxPlaces { try thinTrack(since: survey.start) }
        memory.places += 1
        try connection.run(
            "INSERT OR REPLACE INTO survey_track VALUES (?,?,?,?)",
            boot,
            fix.stamp.boot.milliseconds,
            Int64((fix.latitude * 1e7).rounded()),
            Int64((fix.longitude * 1e7).rounded())
        )
    }

    /// The maximum track length: about 18 hours at one fix per second; less in a small database.
    private var maxPlaces: Int64 { min(65_536, settings.limits.file / 256) }

    /// Thins the track to every second, fourth, … second until half of the fixes are left.
    ///
    /// Without this, a survey left running for months would fill the space of records.
    private func thinTrack(since start: Stamp) throws {
        var step: Int64 = 1
        repeat {
            step *= 2
            try connection.run(
                "DELETE FROM survey_track WHERE abs(boottime-?1)/1000%?2>=?2/2",
                start.boot.milliseconds,
                step
            )
            memory.places = try connection.integer("SELECT count(*) FROM survey_track") ?? 0
        } while memory.places > maxPlaces / 2 && step < 1 << 24
    }

    func loadSurvey() throws -> OpenSurvey? {
        let row = try connection.prepare(OpenSurvey.query)
        return try row.step() ? OpenSurvey(row) : nil
    }

    /// Continues the survey of a quarantined database here.
    ///
    /// Its sightings stay there; they get numbers below 1 and its record counts them as missing.
    ///
    /// `next` is the number of the next sighting there; `boots` maps boot rows there to rows here.
    func adopt(_ survey: OpenSurvey, next: Int64, boots: [Int64: Int64]) throws {
        guard self.survey == nil, let startBoot = boots[survey.startBoot], survey.isPlausible
        else { return }
        let last = min(survey.end?.last ?? .max, next - 1)
        var survey = survey
        survey.startBoot = startBoot
        survey.first -= max(survey.first - 1, last)
        survey.end?.last = 0
        if let end = survey.end { survey.end?.boot = boots[end.boot] ?? boot }
        try insert(survey)
    }

    private func insert(_ survey: OpenSurvey) throws {
        let (start, end) = (survey.start, survey.end)
        try connection.run(
            """
            INSERT INTO open_survey(name, boot, boottime, wall, first, last, end_boot, end_boottime, end_wall)
            VALUES (?,?,?,?,?,?,?,?,?)
            """,
            survey.name,
            survey.startBoot,
            start.boot.milliseconds,
            start.wall.milliseconds,
            survey.first,
            end?.last,
            end?.boot,
            end?.stamp.boot.milliseconds,
            end?.stamp.wall.milliseconds
        )
        self.survey = survey
    }
}

extension Reader {
    /// Returns the survey in progress, or one that has ended without a record.
    func survey() throws -> OpenSurvey? {
        let row = try query(OpenSurvey.query)
        return try row.step() ? OpenSurvey(row) : nil
    }
}

extension OpenSurvey {
    fileprivate static let query = """
        SELECT name, boot, boottime, wall, first, last, end_boot, end_boottime, end_wall FROM open_survey
        """

    /// Reads a row of `query`.
    fileprivate init(_ row: borrowing Statement) {
        self.init(
            name: row.text(0),
            start: row.stamp(boottime: 2),
            startBoot: row.required(1),
            first: row.required(4)
        )
        if let last = row.integer(5) {
            end = End(stamp: row.stamp(boottime: 7), boot: row.required(6), last: last)
        }
    }

    /// Whether name and numbers are valid, so not garbage from damage.
    fileprivate var isPlausible: Bool {
        (1...64).contains(name.utf8.count) && name == name.blanked
            && (-(1 << 40)...1 << 40).contains(first)
    }
}
