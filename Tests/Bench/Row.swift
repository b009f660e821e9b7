// One line of the bench's tables: what was measured, what beside it, and what was promised.
import JSON
import Queue

struct Row {
    /// A limit for the figure itself or for its ratio to the figure measured beside it.
    struct Goal {
        var limit: Double
        var isOfRatio = false
        var isLeast = false
    }

    var what: String
    var unit: String
    var ours: Double
    /// The same work done by another program, and its name.
    var beside: (name: String, figure: Double)?
    var goal: Goal?

    init(
        _ what: String,
        _ unit: String,
        _ ours: Double?,
        beside: (name: String, figure: Double?)? = nil,
        goal: Goal? = nil
    ) {
        (self.what, self.unit, self.ours, self.goal) = (what, unit, ours ?? 0, goal)
        if let name = beside?.name, let figure = beside?.figure { self.beside = (name, figure) }
    }

    var ratio: Double? { beside.flatMap { $0.figure > 0 ? ours / $0.figure : nil } }

    /// nil without a goal, and where there was nothing to compare with.
    var isMet: Bool? {
        guard let goal, let measured = goal.isOfRatio ? ratio : ours else { return nil }
        return goal.isLeast ? measured >= goal.limit : measured <= goal.limit
    }

    private var promise: String {
        guard let goal else { return "" }
        let sign = goal.isLeast ? ">=" : "<="
        return "\(sign) \(QueueReport.text(goal.limit)) \(goal.isOfRatio ? "x" : unit)"
    }

    func write(to json: inout JSONWriter) {
        json.object {
            $0.field("what", what)
            $0.field("unit", unit)
            $0.field("ours", ours)
            if let beside {
                $0.field("baseline", beside.figure)
                $0.field("against", beside.name)
            }
            if let ratio { $0.field("ratio", ratio) }
            if goal != nil { $0.field("goal", promise) }
            if let isMet { $0.field("met", isMet) }
        }
    }

    /// Returns a table of the rows that have a goal, for people.
    static func table(_ rows: [Row]) -> String {
        rows.filter { $0.goal != nil }.reduce(
            QueueReport.line("goal", "measured", "limit", "met")
        ) { text, row in
            let measured = row.goal?.isOfRatio == true ? row.ratio : row.ours
            return text
                + QueueReport.line(
                    row.what,
                    measured.map { QueueReport.text($0) } ?? "-",
                    row.promise,
                    row.isMet == true ? "yes" : "NO"
                )
        }
    }

    /// Returns the output of `--json`: one object on one line, with `more` before its rows.
    static func report(
        _ bench: String,
        _ rows: [Row],
        more: (inout JSONWriter) -> Void = { _ in }
    ) -> String {
        var json = JSONWriter()
        json.object { json in
            json.field("bench", bench)
            more(&json)
            json.key("rows")
            json.array { json in
                for row in rows { row.write(to: &json) }
            }
        }
        return String(decoding: json.bytes, as: UTF8.self) + "\n"
    }
}
