// One member of the records of a batch, and the form in which it is shortest.
import Host
import JSON

/// The values of one member.
struct TableColumn {
    /// With its quotes.
    let name: [UInt8]
    /// The JSON of the values, one after another, and where each ends.
    private var text: [UInt8] = []
    private var ends: [Int32] = []
    /// The records that have the member, in runs.
    private var runs: [(first: Int, length: Int)] = []

    init(name: [UInt8]) { self.name = name }

    func isNamed(_ name: TextBytes) -> Bool {
        self.name.withUnsafeBytes { TextBytes($0) == name }
    }

    mutating func append(_ value: TextBytes, at record: Int) {
        text.append(contentsOf: value.bytes)
        ends.append(Int32(text.count))
        if let last = runs.last, last.first + last.length == record {
            runs[runs.count - 1].length += 1
        } else {
            runs.append((record, 1))
        }
    }

    /// The pattern of the values; it follows from them alone, so a batch is the same bytes at each
    /// try.
    enum Content {
        case constant
        /// Ids or times, by the name of their form, and the steps between them.
        case steps(first: String, list: String, [Int64])
        /// nil: more than half of the values differ.
        case others(WordList?)

        var words: WordList? {
            guard case .others(let words) = self else { return nil }
            return words
        }
    }

    func content() -> Content {
        withValues { values in
            if values.allSatisfy({ $0 == values[0] }) { return .constant }
            if let ids = values.numbers({ idNumber($0, like: values[0]) }) {
                return .steps(first: "id", list: "steps", steps(ids))
            }
            var times = TimeReader()
            if let times = values.numbers({ times.milliseconds($0) }) {
                return .steps(first: "time", list: "ms", steps(times))
            }
            return .others(WordList(values))
        }
    }

    private func withValues<Result>(_ body: (ColumnValues) -> Result) -> Result {
        text.withUnsafeBytes { body(ColumnValues(text: TextBytes($0), ends: ends)) }
    }

    /// Writes the column of a table with `records` rows.
    ///
    /// `leaders`: the values of columns that every row has, those with most different ones first.
    func write(
        _ content: Content,
        of records: Int,
        _ leaders: [WordList],
        to json: inout JSONWriter
    ) {
        json.object { json in
            withValues { values in
                switch content {
                case .constant:
                    json.key("const")
                    json.raw(values[0])
                case .steps(let first, let list, let steps):
                    json.key(first)
                    json.raw(values[0])
                    json.list(list, steps)
                case .others(let words): values.write(words, leaders, to: &json)
                }
            }
            mustHold(
                runs.reduce(0) { $0 + $1.length } == ends.count && ends.count <= records,
                "each row has a value or none"
            )
            guard ends.count < records else { return }
            mustHold(
                zip(runs, runs.dropFirst()).allSatisfy { $0.first + $0.length < $1.first },
                "rows come in order"
            )
            json.key("has")
            json.array { json in
                for run in runs { json.raw("[\(run.first),\(run.length)]") }
            }
        }
    }
}

/// The values of a column while its text is at hand.
struct ColumnValues: RandomAccessCollection {
    let text: TextBytes
    let ends: [Int32]

    var startIndex: Int { 0 }
    var endIndex: Int { ends.count }

    subscript(index: Int) -> TextBytes {
        text[(index == 0 ? 0 : Int(ends[index - 1]))..<Int(ends[index])]
    }

    /// Reads every value as a number; nil if one of them is none.
    func numbers(_ number: (TextBytes) -> Int64?) -> [Int64]? {
        var numbers: [Int64] = []
        for value in self {
            guard let number = number(value) else { return nil }
            numbers.append(number)
        }
        return numbers
    }

    /// Writes them as numbers, as different values, or one by one, whatever is shortest.
    func write(_ words: WordList?, _ leaders: [WordList], to json: inout JSONWriter) {
        let scale = DecimalText(self[0])?.scale ?? 0
        let decimals = numbers { value in
            DecimalText(value).flatMap { $0.scale == scale ? $0.scaled : nil }
        }
        let steps = decimals.map(steps)
        let plain = text.count + count
        let stepped = steps?.reduce(0) { $0 + decimalLength($1) + 1 } ?? .max
        let indexed = words?.length ?? .max
        if let decimals, let steps, stepped <= Swift.min(plain, indexed) {
            json.field("from", decimals[0])
            json.list("steps", steps)
            if scale > 0 { json.field("scale", Int64(scale)) }
        } else if let words, indexed < plain {
            let words = leaders.first { $0.decides(self, like: words) } ?? words
            json.key("of")
            json.array { json in words.firsts.forEach { json.raw(self[$0]) } }
            json.list("at", words.places)
        } else {
            json.key("values")
            json.array { json in forEach { json.raw($0) } }
        }
    }
}

/// The different values of a column, in the order of their first records.
struct WordList {
    /// The first record with each value.
    private(set) var firsts: [Int] = []
    /// For each record the place of its value in `firsts`.
    private(set) var places: [Int32] = []
    /// The bytes of both as JSON, about.
    private(set) var length = 0

    /// Returns nil if more than half of the values differ.
    init?(_ values: ColumnValues) {
        var known: [TextBytes: Int32] = [:]
        places.reserveCapacity(values.count)
        for (index, value) in values.enumerated() {
            if let place = known[value] {
                places.append(place)
            } else {
                guard firsts.count <= values.count / 2 else { return nil }
                known[value] = Int32(firsts.count)
                places.append(Int32(firsts.count))
                firsts.append(index)
                length += value.count + 1
            }
            length += decimalLength(Int64(places[index])) + 1
        }
    }

    /// Returns whether each value of a column follows from the one of this one.
    ///
    /// With the same `at` as this one such a column costs next to nothing, once compressed; `words`
    /// are its own, which its text may exceed by half.
    func decides(_ values: ColumnValues, like words: WordList) -> Bool {
        guard values.count == places.count,
            firsts.reduce(0, { $0 + values[$1].count + 1 }) <= words.length / 2
        else { return false }
        return zip(words.places, places).allSatisfy { own, place in
            own == words.places[firsts[Int(place)]]
        }
    }
}

/// The differences between neighbours.
private func steps(_ numbers: [Int64]) -> [Int64] {
    zip(numbers.dropFirst(), numbers).map { $0 - $1 }
}

extension JSONWriter {
    fileprivate mutating func raw(_ value: TextBytes) { raw(value.bytes) }

    fileprivate mutating func list(_ key: String, _ numbers: [some BinaryInteger]) {
        self.key(key)
        array { json in numbers.forEach { json.value(Int64($0)) } }
    }
}
