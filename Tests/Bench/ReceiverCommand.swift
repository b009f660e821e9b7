// `waypost-bench receiver`: a thousand gateways on one receiver, beside nginx storing the same bodies.
import ArgumentParser
import Glibc
import JSON
import Queue

struct ReceiverCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receiver",
        abstract:
            "Measure the receiver: many gateways at once, beside nginx storing the same bodies.",
        discussion: """
            Each gateway connects, posts a batch of sightings (gzip) under its own device id, reads the answer and \
            goes; 64 are at it at a time, from as many addresses as the receiver allows. The receiver has each \
            record once, on the disk, before it answers; nginx writes each body into a file \
            (client_body_in_file_only) and waits for no disk. Their ratio is the price of that. The clients take \
            their share of the same cores.
            """
    )

    @Option(help: "Gateways, each with a device id of its own.")
    var gateways = 1000
    @Option(help: "Batches of each gateway.")
    var rounds = 3
    @Option(help: "Sightings of a batch.")
    var records = 300
    @Option(help: "Where the receiver and nginx store what they get.")
    var directory = "/var/tmp"
    @Flag(help: "One JSON object instead of the table.")
    var json = false

    mutating func validate() throws {
        guard (1...100_000).contains(gateways), (1...1000).contains(rounds),
            (1...10_000).contains(records)
        else {
            throw ValidationError(
                "--gateways 1 to 100000, --rounds 1 to 1000, --records 1 to 10000"
            )
        }
    }

    mutating func run() throws {
        signal(SIGPIPE, SIG_IGN)
        _ = try BodyServer.findNginx()
        let scratch = try ScratchFolder(in: directory)
        Output.progress("making \(gateways * rounds) bodies")
        let load = try ReceiverLoad(gateways: gateways, rounds: rounds, records: records)
        var sides: [(name: String, figures: Figures)] = []
        for name in ["receiver", "nginx"] {
            Output.progress("\(name): \(gateways) gateways, \(rounds) batches each")
            let folder = "\(scratch.path)/\(name)"
            mkdir(folder, 0o755)
            defer { BodyServer.remove(folder) }
            let server = try name == "nginx" ? BodyServer.nginx(folder) : .receiver(folder)
            var figures: Figures
            do {
                figures = try load.run(port: server.port)
            } catch {
                _ = server.stop()
                throw error
            }
            let usage = server.stop()
            figures["cpu_us_per_batch"] = usage.cpu * 1e6 / Double(gateways * rounds)
            figures["resident_peak_bytes"] = usage.resident
            sides.append((name, figures))
        }
        Output.write(json ? report(sides) : table(load, sides))
    }

    private static let columns = [
        ("batches/s", "batches_per_s", 1.0), ("records/s", "records_per_s", 1.0),
        ("p50 ms", "latency_p50_ms", 1.0), ("p95 ms", "latency_p95_ms", 1.0),
        ("p99 ms", "latency_p99_ms", 1.0), ("most ms", "latency_most_ms", 1.0),
        ("CPU us/batch", "cpu_us_per_batch", 1.0), ("resident MB", "resident_peak_bytes", 1e6),
    ]

    private func ratio(_ sides: [(name: String, figures: Figures)]) -> Double {
        let rates = sides.map { $0.figures["batches_per_s"] ?? 0 }
        return rates[0] / max(rates[1], 1e-9)
    }

    private func table(_ load: ReceiverLoad, _ sides: [(name: String, figures: Figures)]) -> String
    {
        let machine = Machine(folder: directory)
        var text = """
            \(machine.cpu), \(machine.cores) cores, \(machine.fileSystem), \(machine.disk)
            \(gateways) gateways, \(rounds) batches each of \(records) sightings: \(load.bytes / load.count) bytes \
            on the wire, 64 at a time

            """
        text += Self.padded("", 10) + Self.columns.map { Self.padded($0.0, 14) }.joined() + "\n"
        for (name, figures) in sides {
            let cells = Self.columns.map { column in
                let value = (figures[column.1] ?? 0) / column.2
                return Self.padded(
                    value < 100 ? "\((value * 10).rounded() / 10)" : "\(Int(value))",
                    14
                )
            }
            text += Self.padded(name, 10) + cells.joined() + "\n"
        }
        return text
            + "receiver / nginx, batches per second: \((ratio(sides) * 1000).rounded() / 1000)\n"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    private func report(_ sides: [(name: String, figures: Figures)]) -> String {
        Row.report("receiver", summary(sides)) {
            for (name, number) in [
                ("gateways", gateways), ("rounds", rounds), ("records", records),
            ] {
                $0.field(name, Int64(number))
            }
            for (name, figures) in sides {
                $0.key(name)
                figures.write(to: &$0)
            }
            $0.field("ratio", ratio(sides))
        }
    }

    private func summary(_ sides: [(name: String, figures: Figures)]) -> [Row] {
        [
            ("batches of \(records) sightings", "a second", "batches_per_s", 1.0),
            ("answered, half of them within", "ms", "latency_p50_ms", 1),
            ("answered, 99 of 100 within", "ms", "latency_p99_ms", 1),
            ("CPU", "us/batch", "cpu_us_per_batch", 1),
            ("resident at most", "MB", "resident_peak_bytes", 1e6),
        ].map { what, unit, figure, scale in
            let values = sides.map { ($0.figures[figure] ?? 0) / scale }
            return Row(what, unit, values[0], beside: ("nginx", values[1]))
        }
    }
}
