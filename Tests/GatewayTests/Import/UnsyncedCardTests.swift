// The power fails while a card is written, and the card keeps any part of the unsynced data.
import Foundation
import Status
import Support
import Testing

@testable import Daemon
@testable import Field

@Suite struct UnsyncedCardTests {
    private struct PowerCut: Error {}

    private static let old = "[upload]\nendpoint = \"https://old.example.org/api/ingest\"\n"
    private static let new = "[upload]\nendpoint = \"https://new.example.org/api/ingest\"\n"
    private static let oldToken = "old-token\n# for https://old.example.org\n"
    /// As long as some servers' tokens, so that it spans three sectors.
    private static let newSecret = String(repeating: "new-token.", count: 120)
    private static let newToken = newSecret + "\n# for https://new.example.org\n"

    /// Calls `check` with a device for each possible state of the card, after each step of an
    /// import.
    private func forEachCut(
        of prepare: () throws -> Device,
        _ check: (_ device: Device, _ what: String) throws -> Void
    ) throws -> Int {
        var count = 0
        for step in 1... {
            let device = try prepare()
            let card = try UnsyncedCard(device.card)
            guard try start(device, card, cutAfter: step) else { break }
            for (index, outcome) in try card.outcomes().enumerated() {
                count += 1
                try check(try device.afterPowerCut(outcome), "step \(step), outcome \(index)")
            }
        }
        return count
    }

    private func start(
        _ device: Device,
        _ card: UnsyncedCard,
        cutAfter limit: Int
    ) throws -> Bool {
        let steps = Locked(0)
        var files = StepFiles()
        // The import and this test alternate on one thread.
        nonisolated(unsafe) let card = card
        let path = device.card
        files.onStep = { call, file in
            if call == "fsync", file.hasPrefix(path) { try card.sync(file) }
            let step = steps.update { steps in
                steps += 1
                return steps
            }
            if step == limit { throw PowerCut() }
        }
        do {
            try device.start(.card, from: nil, files)
            return false
        } catch is PowerCut {
            return true
        }
    }

    @Test func newSecret_isStoredAtomically_andRemovedFromCard() throws {
        let count = try forEachCut(
            of: {
                let device = try Device()
                try device.put(Self.old, "waypost.toml")
                try device.put("old-token\n", "waypost.token")
                #expect(try device.start().problems == [])
                try device.put("[upload]\nendpont = 1\n", "waypost.toml")
                #expect(try device.start().problems.count == 1)
                try device.put(Self.new, "waypost.toml")
                try device.put(Self.newSecret + "\r\n", "waypost.token")
                return device
            },
            { device, what in
                try device.start(from: device.folder.path + "/nowhere")
                let isNew = device.state == [Self.new, Self.newToken]
                #expect(isNew || device.state == [Self.old, Self.oldToken], "\(what)")
                #expect(device.text("card/waypost.toml") == Self.new, "\(what)")
                #expect(try device.start().problems == [], "\(what)")
                #expect(device.state == [Self.new, Self.newToken], "\(what)")
                #expect(device.text("card/waypost.token")?.contains("new") == false, "\(what)")
                let left = try device.folder.files(in: "card")
                #expect(left == ["waypost.token", "waypost.toml"], "\(what)")
            }
        )
        #expect(count > 40)
    }

    /// The report on the card replaces an earlier one.
    @Test func errors_areReported_whateverTheCardKept() throws {
        let whole = try Device(card: "many-errors")
        try whole.start()
        let count = try forEachCut(
            of: {
                let device = try Device(card: "unknown-key")
                try device.start()
                try device.put(try #require(whole.text("card/waypost.toml")), "waypost.toml")
                return device
            },
            { device, what in
                #expect(device.text("card/waypost.toml") == whole.text("card/waypost.toml"))
                try device.start()
                #expect(device.errors == whole.errors, "\(what)")
                let left = try device.folder.files(in: "card")
                #expect(left == ["waypost-errors.txt", "waypost.toml"], "\(what)")
            }
        )
        #expect(count > 8)
    }
}

extension Device {
    /// The same device at its next boot, with the data that its card kept.
    fileprivate func afterPowerCut(_ card: [String: [UInt8]]) throws -> Device {
        let device = try Device()
        let files = FileManager.default
        // The runtime directory is lost with the power.
        for name in ["etc", "credstore"] where files.fileExists(atPath: "\(folder.path)/\(name)") {
            try? files.removeItem(atPath: "\(device.folder.path)/\(name)")
            try files.copyItem(
                atPath: "\(folder.path)/\(name)",
                toPath: "\(device.folder.path)/\(name)"
            )
        }
        for (name, bytes) in card {
            try Data(bytes).write(to: URL(fileURLWithPath: "\(device.card)/\(name)"))
        }
        return device
    }
}
