// Tables that commands print.
import Host

/// Rows of cells, the heads first, in columns that are as wide as their widest cell.
struct TextTable {
    let rows: [[String]]

    var text: String {
        let heads = rows.first ?? []
        let widths = heads.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            return trimmed(cells.joined(separator: "  "))
        }.joined(separator: "\n")
    }

    /// Formats an RFC 3339 time as `2026-11-22 04:30Z`; nil as `-`.
    static func minute(_ time: String?) -> String {
        time.map { $0.prefix(10) + " " + $0.dropFirst(11).prefix(5) + "Z" } ?? "-"
    }
}
