// A fuzz target for the columns that rows of any program are taken apart into.
import FuzzSupport

@testable import Upload

enum ColumnTargets {
    static let all = [FuzzTarget(name: "columns", run: columns)]

    /// Each line that is an object is a row.
    private static func columns(_ input: [UInt8]) {
        let rows = input.split(separator: 10).map { Array($0) }
            .filter { $0.first == UInt8(ascii: "{") && FoundationJSON.isValid($0) }
        var table = ColumnTable()
        guard (try? rows.forEach { try table.append($0) }) != nil else { return }
        precondition(FoundationJSON.isValid(table.json()))
    }
}
