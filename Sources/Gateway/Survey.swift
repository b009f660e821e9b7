// What `waypost survey` asks for.
import Host
import Queue
import Records

/// What a survey may be called.
package enum SurveyName {
    /// Why a name is none; nil for a good one.
    ///
    /// It goes to terminals, into file names and query engines.
    package static func problem(with name: String) -> String? {
        let isGood = name.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || $0.properties.numericType != nil
                || " ._-".contains(Character($0))
        }
        guard
            name.isEmpty || name.utf8.count > 64 || !isGood || name.first == " " || name.last == " "
        else { return nil }
        return
            "\"\(name.prefix(64))\" is no survey name: up to 64 bytes of letters, digits, blanks inside, and . _ -"
    }
}

/// What there is to say of a survey.
package struct SurveyReply: Codable, Sendable, Equatable {
    /// The survey that goes on, or the one that was stopped.
    @OrNull package var open: String?
    /// RFC 3339.
    @OrNull package var startedAt: String?
    /// Of the one that was stopped.
    @OrNull package var sightings: Int?

    init() {}

    /// The survey that goes on.
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

    /// The sightings are read between two transactions: collecting goes on meanwhile.
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
