// Sizes and durations as a number and a unit, parsed and written exactly.
import Host

/// A unit and its size in the smallest unit.
struct Unit {
    var name: String
    var factor: Int64

    /// Durations, in nanoseconds.
    static let durations = [
        Unit(name: "d", factor: 86_400_000_000_000),
        Unit(name: "h", factor: 3_600_000_000_000),
        Unit(name: "m", factor: 60_000_000_000),
        Unit(name: "s", factor: 1_000_000_000),
        Unit(name: "ms", factor: 1_000_000),
    ]

    /// Sizes, in bytes.
    static let sizes = [
        Unit(name: "GiB", factor: 1 << 30),
        Unit(name: "GB", factor: 1_000_000_000),
        Unit(name: "MiB", factor: 1 << 20),
        Unit(name: "MB", factor: 1_000_000),
        Unit(name: "KiB", factor: 1 << 10),
        Unit(name: "kB", factor: 1000),
    ]
}

/// Parses `1.5GB` or `30 s`: up to 15 digits, an optional point, one unit (none for bytes).
///
/// Returns nil for anything else, and if the result is not a whole number of the smallest unit.
func quantity(_ text: String, units: [Unit]) -> Int64? {
    var rest = text.utf8[...]
    let whole = rest.prefix(while: \.isDigit)
    rest = rest.dropFirst(whole.count)
    var fraction = rest.prefix(0)
    if rest.first == UInt8(ascii: ".") {
        fraction = rest.dropFirst().prefix(while: \.isDigit)
        guard !fraction.isEmpty else { return nil }
        rest = rest.dropFirst(fraction.count + 1)
    }
    if rest.first == UInt8(ascii: " ") { rest = rest.dropFirst() }
    let name = Substring(rest)
    guard !whole.isEmpty, whole.count + fraction.count <= 15,
        let unit = units.first(where: { $0.name == name })
    else { return nil }
    let digits = Array(whole) + Array(fraction)
    let value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 48) }
    let (product, overflow) = value.multipliedReportingOverflow(by: unit.factor)
    let divisor = fraction.reduce(Int64(1)) { power, _ in power * 10 }
    return overflow || product % divisor != 0 ? nil : product / divisor
}

/// Formats a quantity in the largest unit that divides it; nil if there is none.
private func inLargestUnit(_ value: Int64, units: [Unit]) -> String? {
    guard value != 0, let unit = units.first(where: { value % $0.factor == 0 }) else { return nil }
    return "\(value / unit.factor)\(unit.name)"
}

/// Parses a duration such as `30s` or `1.5h`; nil if it is not valid.
package func duration(of text: String) -> Duration? {
    quantity(text, units: Unit.durations).map { .nanoseconds($0) }
}

/// Formats a duration: `5m`, `2.5ms`, `10.24s`, `0s`.
package func durationText(_ duration: Duration) -> String {
    let nanoseconds = duration.nanoseconds
    if nanoseconds == 0 { return "0s" }
    let isWhole = nanoseconds < 1_000_000_000 || nanoseconds % 1_000_000_000 == 0
    let whole = isWhole ? inLargestUnit(nanoseconds, units: Unit.durations) : nil
    if let whole { return whole }
    return nanoseconds < 1_000_000_000
        ? decimal(nanoseconds, places: 6) + "ms" : decimal(nanoseconds, places: 9) + "s"
}

/// Formats `value` with the decimal point moved `places` to the left.
private func decimal(_ value: Int64, places: Int) -> String {
    var digits = String(abs(value))
    digits = String(repeating: "0", count: max(0, places + 1 - digits.utf8.count)) + digits
    var fraction = digits.suffix(places)
    while fraction.last == "0" { fraction.removeLast() }
    return "\(digits.dropLast(places)).\(fraction)"
}

/// Formats a size: `8MiB`, `2GB`, or a plain number of bytes.
package func sizeText(_ bytes: some BinaryInteger) -> String {
    inLargestUnit(Int64(bytes), units: Unit.sizes) ?? "\(bytes)"
}

extension ValueFormat where Value == Int64? {
    /// A size within `range`, or "auto" for nil.
    package static func automaticSize(_ range: ClosedRange<Int64>) -> Self {
        let size = ValueFormat<Int64>.size(range)
        return ValueFormat(
            allowed: "auto or \(size.allowed)",
            read: { literal in
                literal.text == "auto" ? .success(nil) : size.read(literal).map { $0 }
            },
            written: { $0.map(size.written) ?? "\"auto\"" }
        )
    }
}

extension ValueFormat where Value == Duration {
    /// A duration within `range`, and a multiple of `step`.
    package static func duration(_ range: ClosedRange<Duration>, step: Duration? = nil) -> Self {
        let ends = "\(durationText(range.lowerBound)) to \(durationText(range.upperBound))"
        let multiple = step.map { ", a multiple of \(durationText($0))" } ?? ""
        return .text(
            "a duration from \(ends) (number and unit: ms, s, m, h, d)\(multiple)",
            parse: { text in
                guard let nanoseconds = quantity(text, units: Unit.durations) else {
                    return .mismatch("\"\(printable(text))\" is not a valid duration")
                }
                let value = Duration.nanoseconds(nanoseconds)
                guard range.contains(value) else {
                    return .mismatch("\(durationText(value)) is out of range")
                }
                if let step, nanoseconds % step.nanoseconds != 0 {
                    let name = durationText(step)
                    return .mismatch("\(durationText(value)) is not a multiple of \(name)")
                }
                return .success(value)
            },
            written: durationText
        )
    }
}

extension ValueFormat where Value: FixedWidthInteger {
    /// A size in bytes: text with a unit, or a plain number of bytes.
    package static func size(_ range: ClosedRange<Value>) -> Self {
        let ends = "\(sizeText(range.lowerBound)) to \(sizeText(range.upperBound))"
        let units = Unit.sizes + [Unit(name: "", factor: 1)]
        return ValueFormat(
            allowed: "a size from \(ends) (number and unit: kB, MB, GB, KiB, MiB, GiB; or bytes)",
            read: { literal in
                let bytes: Int64
                if case .integer(let number) = literal {
                    bytes = number
                } else if let text = literal.text {
                    guard let value = quantity(text, units: units) else {
                        return .mismatch("\"\(printable(text))\" is not a valid size")
                    }
                    bytes = value
                } else {
                    return .failure(MismatchError(found: literal))
                }
                guard let value = Value(exactly: bytes), range.contains(value) else {
                    return .mismatch("\(bytes) bytes is out of range")
                }
                return .success(value)
            },
            written: { bytes in
                let text = sizeText(bytes)
                return text.utf8.allSatisfy(\.isDigit) ? text : "\"\(text)\""
            }
        )
    }
}

extension Duration {
    package static func days(_ count: Int) -> Duration { .seconds(count * 86_400) }
}
