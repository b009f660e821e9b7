// The power fails after any step of an import: what is in force is the old or the new, never a mixture.
import Foundation
import Host
import Support
import Testing

@testable import Gateway

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

    /// Runs until the power fails after so many steps; false when all were done before.
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
            // Each file by itself is whole at once.
            #expect([Self.old, Self.new].contains(device.state[0]))
            #expect([Self.oldToken, Self.newToken].contains(device.state[1]))
            // The card is gone: both are the old ones, or both the new ones, before the gateway starts.
            try device.start(from: device.folder.path + "/nowhere")
            let isNew = device.state == [Self.new, Self.newToken]
            #expect(isNew || device.state == [Self.old, Self.oldToken], "step \(step)")
            // It is back.
            #expect(try device.start().problems == [])
            #expect(device.state == [Self.new, Self.newToken], "step \(step)")
            #expect(device.text("card/waypost.token")?.contains("new") == false, "step \(step)")
            #expect(try device.folder.files(in: "etc/import") == ["seen", "unverified"])
            #expect(try device.folder.files(in: "card") == ["waypost.token", "waypost.toml"])
        }
        #expect(cuts > 20)
    }

    /// On a starved board the limit of the unit ended it, and `status` said healthy.
    @Test func importThatIsKilled_isTold_untilOneEnds() throws {
        let limit = try #require(
            try (1...).first { try !start(device(secret: "waypost.token", "new\n"), cutAfter: $0) }
        )
        // In its last two steps it takes the note away.
        for step in 1..<(limit - 2) {
            let device = try device(secret: "waypost.token", "new-token\n")
            #expect(try start(device, cutAfter: step))
            let told = device.problems.map(\.description)
            #expect(told.count == 1, "step \(step) of \(limit)")
            #expect(told.first?.contains("the look at it did not end") == true)
            try device.start()
            #expect(device.problems == [])
        }
    }

    /// The gateway has started meanwhile, with what was in force before: nothing else would give it the new one.
    @Test func importThatIsKilled_hasTheServiceRestarted_byTheNextOne() throws {
        for step in 1... {
            let device = try device(secret: "waypost.token", "new-token\n")
            device.places.noteServiceRestarted()
            guard try start(device, cutAfter: step) else { break }
            // Where it is killed before it could commit, the next one finds the card as it was.
            try device.start()
            #expect(device.places.isServiceBehind, "step \(step)")
            #expect(device.state == [Self.new, Self.newToken])
            device.places.noteServiceRestarted()
            try device.start()
            #expect(!device.places.isServiceBehind)
        }
    }

    /// A stick may be looked at while `status` is asked.
    @Test func lookAtAStick_isToldWhenItShouldHaveEnded_evenThatOfSomebodyElse() throws {
        let device = try device(secret: "waypost.token", "new-token\n")
        let stick = TemporaryFolder("waypost")
        try stick.write(Self.new, to: "waypost/waypost.toml")
        try stick.write("new-token\n", to: "waypost/waypost.token")
        #expect(try start(device, .stick, from: stick.path, cutAfter: 3))
        #expect(device.problems == [])
        let told = device.problems(after: .seconds(95)).map(\.file)
        #expect(told == ["the stick"])
        let other = TemporaryFolder("photos")
        try device.start(.stick, from: other.path)
        #expect(device.problems(after: .seconds(95)) == [])
    }

    /// A code ends the token of before: it would be shown to the server that the code is for.
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

    @Test func cut_whileErrorsAreTold_isMadeGoodByTheNextStart() throws {
        for step in 1... {
            let device = try Device(card: "many-errors")
            guard try start(device, cutAfter: step) else { break }
            try device.start()
            #expect(device.errors?.hasSuffix("\r\n") == true)
            let files = try device.folder.files(in: "card")
            #expect(files == ["waypost-errors.txt", "waypost.toml"], "step \(step)")
        }
    }

    /// The first sector is written first: of a long token the second half may still stand there.
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
