// The receiver accepts what the gateway's intake socket accepts: acknowledged records must not end
// in quarantine.
import Foundation
import ReceiverSupport
import Support
import Testing

import Daemon

@testable import Intake
@testable import ServerArchive
@testable import ServerBase

@Suite struct DoorTests {
    private static func nested(_ levels: Int) -> String {
        String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }

    private static func members(_ count: Int) -> String {
        (0..<count).map { #""m\#($0)":0"# }.joined(separator: ",")
    }

    /// Members of an object from a program, and whether both sides accept them.
    private static let corpus: [(members: String, isTaken: Bool)] = [
        ("", true), (#""a":1"#, true), (#""a":{"id":1,"timestamp":2,"clock":3}"#, true),
        (#""a":1,"a":2"#, false), (#""a":1,"\u0061":2"#, false), (#""a":1,"A":2"#, false),
        (#""a":1,"\u0041":2"#, false), (#""é":1,"É":2"#, true), (#""é":1,"\u00e9":2"#, false),
        (#""a[":1,"a{":2,"@":3,"`":4"#, true), (#""o":{"v":1,"V":2}"#, false),
        (#""o":[{"v":1},{"V":1}]"#, true), (#""o":{"v":1},"p":{"V":1},"V":1"#, true),
        (#""o":[{"x":{"vEl":1,"n":0,"Vel":2}}]"#, false),
        (#""id":1"#, false), (#""ID":1"#, false), (#""\u0049d":1"#, false),
        (#""Timestamp":1"#, false), (#""CLOCK":1"#, false), (#""ids":1,"clocks":2"#, true),
        (#""":1"#, false), (#""a":{"":1}"#, true), (#""a":{"":1,"":2}"#, false),
        (#""o":\#(nested(15))"#, true), (#""o":\#(nested(16))"#, false),
        (#""o":{"a":\#(nested(14))}"#, true), (#""o":{"a":\#(nested(15))}"#, false),
        (#""o":\#(nested(32))"#, false), (#""o":[\#(nested(14)),\#(nested(14))]"#, true),
        (members(4093), true), (members(4094), false),
        (#""o":{\#(members(4096))}"#, true), (#""o":{\#(members(4097))}"#, false),
        (#""o":[\#(Array(repeating: "0", count: 9000).joined(separator: ","))]"#, true),
        (#""audio_data":"T2dnUw==","audio_format":"ogg""#, true),
        (#""audio_format":"wav","audio_data":"T2dnU""#, false),
        (#""audio_data":"T2d\u006eUw==","audio_format":"\u006fgg""#, true),
        (#""audio_data":"T2dnU===","audio_format":"flac""#, false),
        (#""audio_data":"T2d=","audio_format":"flac""#, true),
        (#""audio_data":"T=2d","audio_format":"aac""#, false),
        (#""audio_data":"T-_d","audio_format":"aac""#, false),
        (#""audio_data":"","audio_format":"aac""#, true),
        (#""audio_data":"====","audio_format":"aac""#, false),
        (#""audio_data":"no sound","audio_format":"mp3""#, true),
        (#""audio_data":"no sound""#, true), (#""audio_data":[7],"audio_format":"ogg""#, true),
        (#""audio_data":"no sound","audio_format":"OGG""#, true),
        (#""o":{"audio_data":"no sound","audio_format":"ogg"}"#, true),
        (#""audio_data":"AAAA","audio_format":"ogg","audio_file":"x""#, false),
        (#""Audio_File":1,"audio_data":"AAAA","audio_format":"ogg""#, false),
        (#""audio_file":"x","audio_format":"ogg""#, true),
        (#""a":01"#, false), (#""a":"\ud800""#, false), (#""a":"\n""#, true), (#""a":nul"#, false),
        (#""a":-0.5E+3,"b":[true,false,null,"\/"]"#, true), (#""a":1,"#, false),
    ]

    private func doorTakes(_ members: String) -> Bool {
        let line = #"{"stream":"places","data":{\#(members)}}"#
        let byLine = (try? IntakeLine(Array(line.utf8))) != nil
        #expect(byLine == ((try? IntakeLine.members(of: Array("{\(members)}".utf8))) != nil))
        return byLine
    }

    /// Throws the reason if the receiver refuses the members.
    private func receiverTakes(_ members: some Collection<UInt8>) throws {
        // As the gateway writes a record of a user's stream.
        let clock = #","clock":"synced""# + (members.isEmpty ? "" : ",")
        let text = String(decoding: members, as: UTF8.self)
        let body = RawRequest.batch(["r"], padding: clock + text)
        try body.withUnsafeBytes {
            _ = try IncomingBatch(checking: ByteView($0, isMapped: false))
        }
    }

    @Test func bothSides_judgeTheSame() {
        for (members, isTaken) in Self.corpus {
            let shown = members.prefix(80)
            #expect(doorTakes(members) == isTaken, "at the door: \(shown)")
            let isStored = (try? receiverTakes(members.utf8)) != nil
            #expect(isStored == isTaken, "at the receiver: \(shown)")
        }
    }

    /// Lines that a fuzzer found.
    @Test func whateverTheDoorTakes_theReceiverTakes() throws {
        let folder = Tree.path("Tests/Fuzz/corpus/intake")
        var taken = 0
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)")))
            guard let line = try? IntakeLine(bytes) else { continue }
            taken += 1
            #expect(throws: Never.self, "\(name)") { try receiverTakes(line.members) }
        }
        #expect(taken > 0)
    }
}
