// The water level of a tide gauge.
package import Host
package import Records

package struct Tide: PlainRecord {
    package static let kind = StreamKind(
        Stream(9, "tide"),
        wire: "harbour_tide",
        columns: [.number("level_mm", as: "level_m", decimals: 3), .text("gauge")]
    )
    package var stamp: Stamp
    package var level: Double
    package var gauge: String
    package var values: [ColumnValue] { [.number(level), .text(gauge)] }
}
