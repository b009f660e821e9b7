// Handles the requests of `waypost survey`: start, stop, and show the open survey.
import Host
import Queue
import Records

/// The rules for a survey's name.
package enum SurveyName {
    /// Returns why a name is not valid, or nil.
    ///
    /// Names appear on terminals, in file names and in query engines.
    package static func problem(with name: String) -> String? {
        let isGood = name.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || $0.properties.numericType != nil
                || " ._-".contains(Character($0))
        }
        guard
            name.isEmpty || name.utf8.count > 64 || !isGood || name.first == " " || name.last == " "
        else { return nil }
        return
            "\"\(name.prefix(64))\" is not a valid survey name; use up to 64 bytes of letters, digits, blanks inside, and . _ -"
    }
}

/// The answer to a request about a survey.
package struct SurveyReply: Codable, Sendable, Equatable {
    /// The open survey, or the one that was stopped.
    @OrNull package var open: String?
    /// RFC 3339.
    @OrNull package var startedAt: String?
    /// The number of sightings in the stopped survey.
    @OrNull package var sightings: Int?

    init() {}

    /// Reads the open survey.
    init(_ reader: Reader) throws {
        guard let survey = try reader.openSurvey() else { return }
        open = survey.name
        startedAt = survey.start.rfc3339
    }
}

/// Starts and stops surveys; waits for the writer.
struct SurveyHandler: Sendable {
    let queue: Queue

    func start(_ name: String) throws -> SurveyReply {
        if let problem = SurveyName.problem(with: name) { throw Failure(problem) }
        try queue.startSurvey(name)
        return try SurveyReply(try queue.reader())
    }

    /// Stops the survey and stores its record.
    ///
    /// The sightings are read between two transactions, so that collecting continues.
    func stop() throws -> SurveyReply {
        let survey = try queue.endSurvey()
        let reader = try queue.reader()
        let dates = try reader.dates(through: .max)
        let figures = try SurveyFigures(survey, reader, dates: dates)
        let report = figures.json
        try queue.perform { try $0.finishSurvey(report: report) }
        var reply = SurveyReply()
        reply.open = survey.name
        reply.sightings = Int(figures.sightings)
        return reply
    }
}
