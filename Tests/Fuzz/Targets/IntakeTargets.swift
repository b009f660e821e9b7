// Fuzz targets for programs that connect to the intake socket.
import FuzzSupport
import Host
import MQTT
import Records

@testable import Daemon
@testable import Intake

enum IntakeTargets {
    static let all = [
        FuzzTarget(name: "intake", run: line), FuzzTarget(name: "intake-pieces", run: cut),
        FuzzTarget(name: "message", run: message),
    ]

    /// Checks that an accepted record is valid, is one line, and parses to the same values again.
    private static func line(_ input: [UInt8]) {
        do throws(IntakeError) {
            let line = try IntakeLine(input)
            precondition(line.members.count <= input.count)
            precondition(line.members.allSatisfy { $0 >= 0x20 })
            let again = IntakeLine.line(stream: line.stream, members: line.members)
            precondition(again.last == 10)
            let read = try? IntakeLine(Array(again.dropLast()))
            precondition(read?.members == line.members && read?.stream == line.stream)
            let object = Array("{".utf8) + line.members + Array("}".utf8)
            precondition((try? IntakeLine.members(of: object)) == line.members)
            precondition(FoundationJSON.decode(Anything.self, from: object) != nil)
        } catch {
            precondition(error.answer.count < 2000 && error.answer.allSatisfy { $0 >= 0x20 })
        }
    }

    /// Checks that any payload in UTF-8 becomes members that `waypost put` would accept, too.
    private static func message(_ input: [UInt8]) {
        let message = MQTTMessage(topic: "t/\"a", payload: input)
        guard let members = try? MessageMembers(message) else {
            return precondition(String(validating: input, as: UTF8.self) == nil)
        }
        let object = Array("{".utf8) + members.members + Array("}".utf8)
        precondition((try? IntakeLine.members(of: object)) == members.members)
        precondition(FoundationJSON.decode(Anything.self, from: object) != nil)
    }

    /// Any object, for Foundation's parser.
    private struct Anything: Decodable {
        init(from decoder: any Decoder) throws {
            _ = try decoder.container(keyedBy: Key.self)
        }

        private struct Key: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }

            init?(stringValue: String) { self.stringValue = stringValue }

            init?(intValue: Int) { nil }
        }
    }

    /// Checks that lines are the same however they are split into pieces.
    private static func cut(_ input: [UInt8]) {
        let parts = pieces(input)
        let whole = lines(of: [parts.flatMap { $0 }[...]])
        precondition(lines(of: parts) == whole)
    }

    private static func lines(of pieces: [ArraySlice<UInt8>]) -> [LineBuffer.Line] {
        var buffer = LineBuffer()
        var lines: [LineBuffer.Line] = []
        for piece in pieces {
            buffer.append(piece)
            while let line = buffer.next(limit: 7) { lines.append(line) }
        }
        buffer.end()
        while let line = buffer.next(limit: 7) { lines.append(line) }
        return lines
    }
}
