// One column of a batch: the values of one member, for each record that has it.
import Host
import JSON
import ServerBase

/// A column as it was received; the JSON of its values stays in the body.
struct IncomingColumn {
    enum Form {
        case constant(Range<Int>)
        case values([Range<Int>])
        /// Different values, and for each record the place of its own.
        case choice([Range<Int>], at: [Int64])
        case numbers(first: Int64, steps: [Int64], decimals: Int)
        case times(first: Int64, steps: [Int64])
        /// `prefix`: the id before its last 12 digits, with the first quote.
        case ids(prefix: Range<Int>, first: Int64, steps: [Int64])
    }

    /// The range of the member's name, with its quotes.
    private let name: Range<Int>
    private let form: Form
    /// The records that have the member; nil: all.
    private let runs: [(first: Int64, length: Int64)]?
    /// The number of values that were written, and of runs that ended.
    private var (next, run) = (0, 0)
    /// The number of values, as `check` found it.
    private var count = 0
    /// The number of the last value.
    private var number: Int64 = 0

    /// Reads a column; throws an HTTPError that names it.
    init(_ name: Range<Int>, _ text: inout BodyJSON) throws {
        self.name = name
        do {
            var parts = ColumnParts()
            try text.object { try parts.read($1, &$0) }
            (form, runs) = (try parts.form(in: text.bytes), try parts.runs())
        } catch let error as RecordError {
            throw Self.refusal(of: name, in: text.bytes, error)
        }
    }

    private static func refusal(
        of name: Range<Int>,
        in bytes: ByteView,
        _ error: RecordError
    ) -> HTTPError {
        let name = JSONString.read(bytes, name) ?? "a long name"
        return ColumnRows.refusal("\(printable(name, limit: 80)): \(error.reason)")
    }

    /// Checks that there is a value for each of `records` records that has one; returns the fewest
    /// bytes that the column has in rows.
    mutating func check(of records: Int, in bytes: ByteView) throws -> Int {
        do {
            count = try count(of: records)
            let value: Int
            switch form {
            case .constant(let range): value = range.count
            case .values(let ranges): value = try expect(ranges.count == count, 1)
            case .choice(let values, let at):
                let places = Int64(0)..<Int64(values.count)
                value = try expect(at.count == count && at.allSatisfy(places.contains), 1)
            case .numbers(let first, let steps, _):
                try expect(first, steps, count, within: Int64.min..<Int64.max)
                value = 1
            case .times(let first, let steps):
                try expect(first, steps, count, within: 0..<253_402_300_800_000)
                value = 26
            case .ids(_, let first, let steps):
                try expect(first, steps, count, within: 0..<ColumnParts.idNumbers)
                value = ColumnParts.idDigits
            }
            // With colon and comma.
            let (bytes, isTooLarge) = count.multipliedReportingOverflow(by: name.count + value + 2)
            return isTooLarge ? Int.max / 2000 : min(bytes, Int.max / 2000)
        } catch let error as RecordError {
            throw Self.refusal(of: name, in: bytes, error)
        }
    }

    /// Each value was written.
    var isWritten: Bool { next == count }

    /// The number of records that have the member.
    private func count(of records: Int) throws -> Int {
        guard let runs else { return records }
        var (count, end) = (Int64(0), Int64(0))
        for run in runs {
            guard run.first >= end, run.length > 0, run.first <= Int64(records),
                run.length <= Int64(records) - run.first
            else { throw RecordError(reason: "has is not of ascending runs of the records") }
            (count, end) = (count + run.length, run.first + run.length)
        }
        return Int(count)
    }

    private func expect(_ isRight: Bool, _ value: Int) throws -> Int {
        guard isRight else {
            throw RecordError(reason: "there is not one value for each record that has it")
        }
        return value
    }

    private func expect(
        _ first: Int64,
        _ steps: [Int64],
        _ count: Int,
        within range: Range<Int64>
    ) throws {
        _ = try expect(steps.count == count - 1, 0)
        var number = first
        guard range.contains(number),
            steps.allSatisfy({ step in
                let (sum, overflow) = number.addingReportingOverflow(step)
                number = sum
                return !overflow && range.contains(sum)
            })
        else { throw RecordError(reason: "its steps lead out of its range") }
    }

    // MARK: Rows

    /// Writes the member of a record, if it has it; call it once for each record in order.
    mutating func write(_ record: Int, of body: ByteView, to json: inout JSONWriter) {
        guard has(record) else { return }
        json.key(raw: body[name])
        switch form {
        case .constant(let value): json.raw(body[value])
        case .values(let values): json.raw(body[values[next]])
        case .choice(let values, let at): json.raw(body[values[Int(at[next])]])
        case .numbers(let first, let steps, let decimals):
            json.value(scaled: advance(first, steps), decimals: decimals)
        case .times(let first, let steps):
            json.value(WallTime(milliseconds: advance(first, steps)).rfc3339)
        case .ids(let prefix, let first, let steps):
            let digits = String(advance(first, steps), radix: 16)
            let zeros = String(repeating: "0", count: ColumnParts.idDigits - digits.count)
            json.raw(Array(body[prefix]) + Array("\(zeros)\(digits)\"".utf8))
        }
        next += 1
    }

    private mutating func advance(_ first: Int64, _ steps: [Int64]) -> Int64 {
        number = next == 0 ? first : number + steps[next - 1]
        return number
    }

    private mutating func has(_ record: Int) -> Bool {
        guard let runs else { return true }
        while run < runs.count, Int64(record) >= runs[run].first + runs[run].length { run += 1 }
        return run < runs.count && Int64(record) >= runs[run].first
    }
}
