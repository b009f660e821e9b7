// What `waypost survey` asks for, answered by the daemon or, with the daemon dead, on the database itself.
internal import Board
internal import FoundationEssentials
internal import Host
internal import Queue
internal import Streams

/// A request of `waypost survey`.
package enum SurveyRequest: Sendable, Equatable {
    case start(name: String)
    case stop
    case list

    private struct Wire: Codable {
        var command: String
        var action: String
        var name: String?
    }

    /// nil for any other line.
    init?(line: [UInt8]) {
        guard let wire = try? JSONInput.decode(Wire.self, from: line),
            wire.command == "survey"
        else { return nil }
        switch (wire.action, wire.name) {
        case ("start", let name?): self = .start(name: name)
        case ("stop", _): self = .stop
        case ("list", _): self = .list
        default: return nil
        }
    }

    /// One line of JSON with its end.
    var line: [UInt8] {
        let wire =
            switch self {
            case .start(let name): Wire(command: "survey", action: "start", name: name)
            case .stop: Wire(command: "survey", action: "stop")
            case .list: Wire(command: "survey", action: "list")
            }
        return ((try? JSONEncoder().encode(wire)).map { Array($0) } ?? []) + [10]
    }

    /// Why a name is none; nil for a good one.
    ///
    /// It goes to terminals, into file names and query engines.
    package static func problem(withName name: String) -> String? {
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

/// The answer to a request; on the control socket one line of JSON.
package struct SurveyReply: Codable, Sendable, Equatable {
    /// The survey that goes on.
    @OrNull package var open: String?
    /// RFC 3339.
    @OrNull package var startedAt: String?
    /// The one that was stopped, its report as a record on the wire without its id.
    @OrNull package var sightings: Int?
    /// Why it was not done.
    @OrNull package var error: String?

    init(error: String? = nil) {
        self.error = error
    }

    init?(json: [UInt8]) {
        guard let reply = try? JSONInput.decode(Self.self, from: json, snakeCase: true) else {
            return nil
        }
        self = reply
    }

    var json: [UInt8] { encodedJSON(self) }
}

/// Does on a queue what was asked for.
struct SurveyDesk: Sendable {
    let queue: Queue

    func answer(_ request: SurveyRequest) -> SurveyReply {
        do {
            switch request {
            case .start(let name): return try start(name)
            case .stop: return try stop()
            case .list: return try list()
            }
        } catch let refusal as SurveyRefusal {
            return SurveyReply(error: "\(refusal)")
        } catch {
            return SurveyReply(error: "the survey could not be changed: \(error)")
        }
    }

    private func start(_ name: String) throws -> SurveyReply {
        if let problem = SurveyRequest.problem(withName: name) {
            return SurveyReply(error: problem)
        }
        try queue.startSurvey(name)
        return try list()
    }

    /// The sightings are read between two transactions: collecting goes on meanwhile.
    private func stop() throws -> SurveyReply {
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

    private func list() throws -> SurveyReply {
        var reply = SurveyReply()
        guard let survey = try queue.perform({ $0.survey }) else { return reply }
        reply.open = survey.name
        reply.startedAt = survey.start.wall.rfc3339
        return reply
    }
}
