// `waypost resend` to a server that was restored from an older backup.
import Foundation
import Support
import Testing

@Suite struct ResendSystemTests {
    private let device: Device
    private var data: String { device.folder + "/data" }

    init() throws { device = try Device() }

    /// Starts the server over the data in its folder, and the gateway with its address.
    private func start(_ more: String = "[stream.weather]") throws {
        let endpoint = try device.startReceiver()
        try device.write("demo-token", "token", mode: 0o600)
        try device.configure(
            """
            [upload]
            required = false
            endpoint = "\(endpoint)"
            token_file = "\(device.folder)/token"
            interval = "1h"
            \(more)
            """
        )
        try device.start()
    }

    private func stop() throws {
        device.killDaemon()
        device.children.popLast()?.killAndWait()
    }

    private func upload(_ numbers: Range<Int>) throws {
        let lines = numbers.map { "{\"n\": \($0)}\n" }.joined()
        #expect(try device.run("put", "weather", input: lines).status == 0)
        #expect(try device.run("sync").status == 0)
    }

    /// The lines of a stream that the server has stored.
    private func stored() throws -> [String] {
        let files = FileManager.default.enumerator(atPath: data)?.compactMap { $0 as? String } ?? []
        return try files.filter { $0.contains("stream=weather") && $0.hasSuffix("records.ndjson") }
            .flatMap {
                try String(contentsOfFile: data + "/" + $0, encoding: .utf8).split(separator: "\n")
                    .map { String($0) }
            }
    }

    @Test func restoredServer_receivesLostRecords_acrossARestart() throws {
        try start()
        try upload(0..<3)
        try stop()
        let backup = device.folder + "/backup"
        try FileManager.default.copyItem(atPath: data, toPath: backup)
        try start()
        try upload(3..<5)
        let before = try stored().sorted()
        #expect(before.count == 5)
        let marked = try device.run("resend", "weather", "--since", "1h")
        #expect(marked.status == 0, "\(marked.error)")
        #expect(marked.output.contains("5 records in 2 batches are sent again"))
        try stop()

        try FileManager.default.removeItem(atPath: data)
        try FileManager.default.moveItem(atPath: backup, toPath: data)
        #expect(try stored().count == 3)
        try start()
        #expect(try device.run("sync").status == 0)
        #expect(try stored().sorted() == before)
        let stream = try device.stream("weather")
        #expect(stream["uploaded"] as? Int == 5)
        #expect(stream["pending"] as? Int == 0)
        #expect(try device.stop() == 0)
    }

    /// A sync sends 40 batches again.
    ///
    /// `status` shows what is left, and a person's sync goes on with the next ones.
    @Test func portions_areShown_andAllOfThemWaitedFor() throws {
        let names = (0..<21).map { "s\($0)" }
        try start(names.map { "[stream.\($0)]" }.joined(separator: "\n"))
        defer { try? stop() }
        for _ in 0..<2 {
            for name in names {
                #expect(try device.run("put", name, input: "{\"n\": 1}\n").status == 0)
            }
            #expect(try device.run("sync").status == 0)
        }
        #expect(try device.run("resend", "--since", "1h").status == 0)
        func left() throws -> [Int] {
            let streams = try device.status()["streams"] as? [String: [String: Any]] ?? [:]
            return streams.values.compactMap { $0["resending"] as? Int }
        }
        let marked = try left()
        #expect(marked.reduce(0, +) >= 42)
        let screen = try device.run("status").output
        #expect(screen.contains(", resending: \(marked.reduce(0, +)) left"), "\(screen)")
        let sync = try device.run("sync", "--wait", "100")
        #expect(sync.status == 0)
        #expect(!sync.error.contains("to be sent again"), "\(sync.error)")
        #expect(try left().isEmpty)
    }

    @Test func whatIsNoLongerHere_isCounted() throws {
        try start("[stream.weather]\n[storage]\nretention = \"0s\"")
        defer { try? stop() }
        try upload(0..<5)
        try waitUntil("their deletion") { try device.run("export", "weather").output.isEmpty }
        let answer = try device.run("resend", "weather", "--since", "1h")
        #expect(answer.status == 1)
        let gone = "up to 5 records uploaded from then on are no longer on this device"
        #expect(answer.error.contains(gone), "\(answer.error)")
    }

    @Test func whatCannotBeSentAgain_isSaid() throws {
        try start()
        defer { try? stop() }
        try upload(0..<1)
        let none = try device.run("resend", "location", "--since", "1h")
        #expect(none.status == 1)
        #expect(none.error.contains("no record that was uploaded then"))
        let unknown = try device.run("resend", "wether", "--since", "1h")
        #expect(unknown.status == 2)
        #expect(unknown.error.contains("use one of"))
        #expect(try device.run("resend", "--since", "yesterday").status == 64)
        #expect(try device.run("resend", "--since", "1h", "--until", "2h").status == 64)
    }
}
