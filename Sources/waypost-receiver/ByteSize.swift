// Parses sizes such as 16MiB on the command line.
import ArgumentParser

/// A number of bytes, with or without a unit of the configuration file (waypost.toml(5)).
struct ByteSize: ExpressibleByArgument {
    var bytes: Int

    init(bytes: Int) { self.bytes = bytes }

    init?(argument: String) {
        let units = [
            "": 1, "B": 1, "kB": 1000, "MB": 1_000_000, "GB": 1_000_000_000, "KiB": 1 << 10,
            "MiB": 1 << 20, "GiB": 1 << 30,
        ]
        let digits = argument.prefix { ("0"..."9").contains($0) }
        guard let number = Int(digits), number > 0,
            let unit = units[String(argument.dropFirst(digits.count))]
        else { return nil }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: unit)
        guard !overflow else { return nil }
        self.bytes = bytes
    }

    var defaultValueDescription: String {
        bytes % (1 << 20) == 0 ? "\(bytes >> 20)MiB" : "\(bytes)"
    }
}
