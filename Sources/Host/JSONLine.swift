// How everything that this program writes as JSON is written.
internal import FoundationEssentials

/// One line of JSON, its keys in snake case and in order.
package func encodedJSON(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(value)).map { Array($0) } ?? Array("{}".utf8)
}
