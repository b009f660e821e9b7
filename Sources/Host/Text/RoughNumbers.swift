// Numbers as a person reads them.

/// Formats a number of bytes as `512 B` or `23.3 MB`.
package func roughSize(_ bytes: Int64) -> String {
    var (value, units) = (Double(bytes), ["B", "kB", "MB", "GB", "TB"][...])
    while value >= 1000, units.count > 1 {
        value /= 1000
        units.removeFirst()
    }
    return units.count == 5 ? "\(bytes) B" : "\(rounded(value, 10)) \(units[units.startIndex])"
}

/// Rounds to multiples of `1 / parts`: 10 gives one decimal.
package func rounded(_ value: Double, _ parts: Double) -> Double {
    (value * parts).rounded() / parts
}

/// Returns "1 record", "2 records"; `many` is a plural without an s alone.
package func counted(_ count: some BinaryInteger, _ one: String, _ many: String? = nil) -> String {
    "\(count) \(count == 1 ? one : many ?? one + "s")"
}
