// The layout of the data directory: audio apart from the partitions, and the names of members.
import Foundation
import ReceiverSupport
import Support
import Testing

@Suite struct LayoutTests {
    private static let day = "2026-11-21"

    private func files(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    private static let audio = #","audio_data":"T2dnUw==","audio_format":"ogg""#

    private static let microphones: [(members: String, stored: [String])] = [
        // The member, the names that are stored.
        (#","device":"hw:1""#, ["capture_device"]), (#","Device":"hw:1""#, ["capture_device"]),
        (#","\u0064evice":"hw:1""#, ["capture_device"]),
        // Renamed, it would be there twice, which DuckDB refuses.
        (#","device":1,"Capture_Device":2"#, ["Capture_Device", "device"]), ("", []),
    ]

    @Test(arguments: microphones)
    func microphone_isNotNamedLikeThePartition(members: String, stored: [String]) throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(padding: Self.audio + members) == 200)
        let record = try #require(try receiver.records("places").first)
        #expect(record.keys.filter { $0.lowercased().hasSuffix("device") }.sorted() == stored)
    }

    @Test func memberOfAnotherRecord_keepsItsName() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(padding: #","device":"d""#) == 200)
        #expect(try receiver.records("places").first?["device"] as? String == "d")
    }

    /// A crash of the move is repeated by the next start, so half of it may be done.
    @Test func audioOfAnEarlierVersion_isMovedOutOfThePartitions() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(ids: ["a", "b"], padding: Self.audio) == 200)
        receiver.kill()
        let (old, new) = (
            receiver.folder + "/stream=places/date=\(Self.day)/device=d1",
            receiver.folder + "/audio/places/\(Self.day)/d1"
        )
        let names = try files(new)
        #expect(names.count == 2)
        try FileManager.default.moveItem(atPath: "\(new)/\(names[0])", toPath: "\(old)/\(names[0])")
        // A file of a person stays where it is.
        try Data("x".utf8).write(to: URL(fileURLWithPath: "\(old)/notes.txt"))
        try receiver.start()
        #expect(try files(new) == names)
        #expect(try files(old) == ["notes.txt", "records.ndjson"])
        #expect(try receiver.ids("places").sorted() == ["a", "b"])
        let browser = try PageClient(receiver, viewer: "anna")
        let page = "/device/d1/\(Self.day)/places/\(names[0])"
        #expect(try browser.download(page).0 == Data("OggS".utf8))
    }

    @Test func summary_namesTheNewestAudioWhereItIs() throws {
        let receiver = try ReceiverProcess()
        #expect(try receiver.send(padding: Self.audio) == 200)
        let outcome = try receiver.command("--summary", "--json")
        let summary = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
        let stream = (summary as? [String: [String: Any]])?["places"]
        let path = try #require(stream?["newest_audio"] as? String)
        #expect(path.contains("/audio/places/\(Self.day)/d1/"))
        #expect(FileManager.default.contents(atPath: path) == Data("OggS".utf8))
    }
}
