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
