// Rows of a batch in columns, as another server would make them (waypost-protocol(7), COLUMNS).
internal import Foundation
internal import Host

extension WireJSON {
    /// The records in the value of `columns`; nil if it is not as it should be.
    var rows: [WireJSON]? {
        guard let count = self["count"]?.integer, case .object(let members)? = self["members"]
        else {
            return nil
        }
        var rows = [[(key: String, value: WireJSON)]](repeating: [], count: count)
        for (name, column) in members {
            let runs = column["has"]?.list?.compactMap { run -> Range<Int>? in
                guard let first = run.list?.first?.integer, let length = run.list?.last?.integer
                else { return nil }
                return first..<(first + length)
            }
            let has = (runs ?? [0..<count]).flatMap { Array($0) }
            guard let values = column.values(has.count), values.count == has.count,
                has.allSatisfy(rows.indices.contains)
            else { return nil }
            for (row, value) in zip(has, values) { rows[row].append((name, value)) }
        }
        return rows.map { .object($0) }
    }

    private func values(_ count: Int) -> [WireJSON]? {
        if let value = self["const"] { return [WireJSON](repeating: value, count: count) }
        if let values = self["values"]?.list { return values }
        if let values = self["of"]?.list {
            let at = self["at"]?.list?.compactMap(\.integer) ?? []
            return at.allSatisfy(values.indices.contains) ? at.map { values[$0] } : nil
        }
        guard let steps = (self["steps"] ?? self["ms"])?.list?.compactMap(\.integer) else {
            return nil
        }
        if let first = self["from"]?.integer {
            let divisor = pow(10, Double(self["scale"]?.integer ?? 0))
            return Self.sums(first, steps).map { .number(Double($0) / divisor) }
        }
        if let time = self["time"]?.text.flatMap(WallTime.init(rfc3339:)) {
            return Self.sums(0, steps).map { .text((time + .milliseconds($0)).rfc3339) }
        }
        guard let id = self["id"]?.text, let last = Int(id.suffix(12), radix: 16) else {
            return nil
        }
        return Self.sums(last, steps).map {
            .text(id.dropLast(12) + String(String($0 | 1 << 48, radix: 16).dropFirst()))
        }
    }

    private static func sums(_ first: Int, _ steps: [Int]) -> [Int] {
        steps.reduce(into: [first]) { sums, step in sums.append(sums[sums.count - 1] + step) }
    }
}
