// The result of `waypost-bench queue`: a table for people, an object for programs.
import JSON
import Queue

/// The figures of one run of the bench.
struct QueueReport {
    struct Backlog {
        var records: Int
        var fill: Figures
        var open: Figures
        var drain: Figures
    }

    var machine: Machine
    var rows: Int
    var rounds: Int
    /// 100 sightings a commit.
    var paced: [Side: Figures] = [:]
    /// A commit a second.
    var fullSpeed: [Side: Figures] = [:]
    /// A commit a second, some 143 sightings each.
    var live: [Side: Figures] = [:]
    var journal = Figures()
    var backlog: Backlog?

    init(machine: Machine, rows: Int, rounds: Int) {
        self.machine = machine
        self.rows = rows
        self.rounds = rounds
    }

    /// File systems without a disk below count no bytes there; what was written is named instead.
    var bytesFigure: String {
        (paced[.typed]?["block_bytes_per_row"] ?? 0) > 0 ? "block_bytes_per_row" : "wchar_per_row"
    }
}

// MARK: For programs

extension QueueReport {
    /// One object on one line.
    var json: String {
        Row.report("queue", summary) {
            machine.write(to: &$0)
            $0.field("rows", Int64(rows))
            $0.field("rounds", Int64(rounds))
            $0.field("bytes_figure", bytesFigure)
            for (name, rhythm, sides) in [
                ("paced", "100 a commit", paced), ("full_speed", "a commit a second", fullSpeed),
                ("live", "a commit a second", live),
            ] where !sides.isEmpty {
                $0.key(name)
                Self.write(sides, rhythm, to: &$0)
            }
            $0.key("journal")
            journal.write(to: &$0)
            if let backlog {
                $0.key("backlog")
                Self.write(backlog, to: &$0)
            }
        }
    }

    private static func write(
        _ sides: [Side: Figures],
        _ rhythm: String,
        to json: inout JSONWriter
    ) {
        json.object {
            $0.field("rhythm", rhythm)
            for side in [Side.queue, .path, .typed, .json] {
                guard let figures = sides[side] else { continue }
                $0.key(side == .typed ? "c" : side == .json ? "c_json" : side.rawValue)
                figures.write(to: &$0)
            }
            for side in [Side.queue, .path] {
                guard let own = sides[side], let base = sides[.typed] else { continue }
                $0.key("\(side)_ratio")
                write(own, over: base, to: &$0)
            }
        }
    }

    private static func write(_ figures: Figures, over base: Figures, to json: inout JSONWriter) {
        json.object { object in
            for (name, value) in figures.values.sorted(by: { $0.key < $1.key }) {
                guard let divisor = base[name], divisor > 0 else { continue }
                object.field(name, value / divisor)
            }
        }
    }

    private static func write(_ backlog: Backlog, to json: inout JSONWriter) {
        json.object {
            $0.field("records", Int64(backlog.records))
            $0.key("fill")
            backlog.fill.write(to: &$0)
            $0.key("open")
            backlog.open.write(to: &$0)
            $0.key("drain")
            backlog.drain.write(to: &$0)
        }
    }
}
