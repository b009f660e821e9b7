// A cell of a CSV file, safe to open in a spreadsheet.

/// Returns a cell of CSV (RFC 4180, section 2), in quotation marks where it needs them.
///
/// A text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP, "CSV
/// Injection"): devices, brokers and beacons choose names and texts. Numbers stay as they are.
package func csvCell(_ text: String) -> String {
    let bytes = text.utf8
    let isFormula = bytes.first.map { [9, 10, 13, 43, 45, 61, 64].contains($0) } ?? false
    let cell = isFormula && Double(text) == nil ? "'" + text : text
    // Not by characters: a mark may be combined with a quotation mark.
    let special = bytes.contains { [10, 13, 34, 44].contains($0) }
    guard special || bytes.first == 32 || bytes.last == 32 else { return cell }
    let quoted = cell.utf8.flatMap { $0 == 34 ? [34, 34] : [$0] }
    return "\"\(String(decoding: quoted, as: UTF8.self))\""
}
