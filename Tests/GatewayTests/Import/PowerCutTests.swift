// A power cut after any step of an import leaves the old or the new state, never a mixture.
import Foundation
import Host
import Status
import Support
import Testing

@testable import Daemon
@testable import Field

@Suite struct PowerCutTests {
    private struct PowerCut: Error {}

    private static let old = "[upload]\nendpoint = \"https://old.example.org/api/ingest\"\n"
    private static let new = "[upload]\nendpoint = \"https://new.example.org/api/ingest\"\n"

    private static let oldToken = "old-token\n# for https://old.example.org\n"
    private static let newToken = "new-token\n# for https://new.example.org\n"
    private static let newCode = "NEWCODE\n# for https://new.example.org\n"

    /// A device with an older configuration and token, and a newer one on its card.
    private func device(secret: String, _ text: String) throws -> Device {
        let device = try Device()
        try device.put(Self.old, "waypost.toml")
        try device.put("old-token\n", "waypost.token")
        #expect(try device.start().problems == [])
        try device.put(Self.new, "waypost.toml")
        try device.put(text, secret)
        return device
    }

    /// Runs until a power cut after `step` steps; false if the import ended before.
    private func start(
        _ device: Device,
        _ medium: CardImport.Medium = .card,
        from path: String? = nil,
        cutAfter limit: Int
    ) throws -> Bool {
        let steps = Locked(0)
        var files = StepFiles()
        files.onStep = { _, _ in
            let step = steps.update { steps in
                steps += 1
                return steps
            }
            if step == limit { throw PowerCut() }
        }
        do {
            try device.start(medium, from: path, files)
            return false
        } catch is PowerCut {
            return true
        }
    }

    @Test func cut_leavesOldOrNew_andTheNextStartGoesOn() throws {
        var cuts = 0
        for step in 1... {
            let device = try device(secret: "waypost.token", "new-token\n")
            guard try start(device, cutAfter: step) else { break }
            cuts = step
            // Each file is whole at any time.
            #expect([Self.old, Self.new].contains(device.state[0]))
            #expect([Self.oldToken, Self.newToken].contains(device.state[1]))
            // The card is gone: before the gateway starts, both files are old or both are new.
            try device.start(from: device.folder.path + "/nowhere")
            let isNew = device.state == [Self.new, Self.newToken]
            #expect(isNew || device.state == [Self.old, Self.oldToken], "step \(step)")
            // The card is back.
            #expect(try device.start().problems == [])
            #expect(device.state == [Self.new, Self.newToken], "step \(step)")
            #expect(device.text("card/waypost.token")?.contains("new") == false, "step \(step)")
            #expect(try device.folder.files(in: "etc/import") == ["seen", "unverified"])
            #expect(try device.folder.files(in: "card") == ["waypost.token", "waypost.toml"])
        }
        #expect(cuts > 20)
    }

    /// A unit's timeout killed it on an overloaded board, while `status` said healthy.
    @Test func killedImport_isReported_untilOneFinishes() throws {
        let limit = try #require(
            try (1...).first { try !start(device(secret: "waypost.token", "new\n"), cutAfter: $0) }
        )
        // Its last two steps remove the note.
        for step in 1..<(limit - 2) {
            let device = try device(secret: "waypost.token", "new-token\n")
            #expect(try start(device, cutAfter: step))
            let reported = device.problems.map(\.description)
            #expect(reported.count == 1, "step \(step) of \(limit)")
            #expect(reported.first?.contains("the look at it did not end") == true)
            try device.start()
            #expect(device.problems == [])
        }
    }

    /// The gateway has already started with the old files: only a restart gives it the new ones.
    @Test func killedImport_hasServiceRestartedByTheNextOne() throws {
        for step in 1... {
            let device = try device(secret: "waypost.token", "new-token\n")
            device.paths.recordServiceRestarted()
            guard try start(device, cutAfter: step) else { break }
            // If it was killed before its commit, the next import finds the card unchanged.
            try device.start()
            #expect(device.paths.isServiceBehind, "step \(step)")
            #expect(device.state == [Self.new, Self.newToken])
            device.paths.recordServiceRestarted()
            try device.start()
            #expect(!device.paths.isServiceBehind)
        }
    }

    /// A stick may be imported while `status` is asked.
    @Test func overdueStickImport_isReported_untilTheNextImport() throws {
        let device = try device(secret: "waypost.token", "new-token\n")
        let stick = TemporaryFolder("waypost")
        try stick.write(Self.new, to: "waypost/waypost.toml")
        try stick.write("new-token\n", to: "waypost/waypost.token")
        #expect(try start(device, .stick, from: stick.path, cutAfter: 3))
        #expect(device.problems == [])
        let reported = device.problems(after: .seconds(95)).map(\.file)
        #expect(reported == ["the stick"])
        let other = TemporaryFolder("photos")
        try device.start(.stick, from: other.path)
        #expect(device.problems(after: .seconds(95)) == [])
    }

    /// Importing a code deletes the old token, which must not be sent to the code's server.
    @Test func cut_neverLeavesAnOldTokenWithANewServer() throws {
        for step in 1... {
            let device = try device(secret: "waypost.code", "NEWCODE\n")
            guard try start(device, cutAfter: step) else { break }
            try device.start(from: device.folder.path + "/nowhere")
            let code = device.text("etc/import/waypost.code")
            let isOld = device.state == [Self.old, Self.oldToken] && code == nil
            let isNew = device.state == [Self.new, nil] && code == Self.newCode
            #expect(isOld || isNew, "step \(step)")
            try device.start()
            #expect(device.state == [Self.new, nil], "step \(step)")
            #expect(device.text("etc/import/waypost.code") == Self.newCode)
        }
    }

    @Test func powerCutWhileReporting_isRepairedByNextStart() throws {
        for step in 1... {
            let device = try Device(card: "many-errors")
            guard try start(device, cutAfter: step) else { break }
            try device.start()
            #expect(device.errors?.hasSuffix("\r\n") == true)
            let files = try device.folder.files(in: "card")
            #expect(files == ["waypost-errors.txt", "waypost.toml"], "step \(step)")
        }
    }

    /// The first sector is written first: the rest of a long token may still be there.
    @Test func halfOverwrittenSecret_isNoNewOne_andIsOverwritten() throws {
        let device = try Device()
        let token = String(repeating: "t", count: 900)
        try device.put(Self.old, "waypost.toml")
        try device.put(token + "\r\n", "waypost.token")
        try device.start()
        let whole = try #require(device.text("card/waypost.token"))
        #expect(whole.utf8.count == 902)
        try device.put(whole.prefix(512) + token.suffix(388) + "\r\n", "waypost.token")
        #expect(try device.start().problems == [])
        #expect(device.text("card/waypost.token") == whole)
        #expect(device.state[1] == token + "\n# for https://old.example.org\n")
    }
}
