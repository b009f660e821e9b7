// Fuzz targets for MQTT brokers.
import FuzzSupport

@testable import MQTT

enum MQTTTargets {
    static let all = [FuzzTarget(name: "mqtt", run: packets)]

    /// Checks that packets do not depend on how the bytes arrive, stay within bounds, and encode to
    /// packets that read the same.
    private static func packets(_ input: [UInt8]) {
        let bytes = pieces(input).flatMap(\.self)
        let whole = read([bytes[...]])
        precondition(read(pieces(input)) == whole)
        for packet in whole.packets {
            if case .publish(let message) = packet {
                precondition(message.payload.count <= limit && !message.topic.isEmpty)
                guard message.skipped == 0 else {
                    precondition(message.skipped > limit)
                    continue
                }
            }
            precondition(read([packet.bytes[...]]).packets == [packet])
        }
    }

    private static let limit = 64

    private struct Outcome: Equatable {
        var packets: [MQTTPacket] = []
        var fault: MQTTError?
    }

    private static func read(_ pieces: [ArraySlice<UInt8>]) -> Outcome {
        var reader = MQTTReader(payloadLimit: limit)
        var outcome = Outcome()
        for piece in pieces where outcome.fault == nil {
            reader.append(Array(piece))
            do throws(MQTTError) {
                while let packet = try reader.next() { outcome.packets.append(packet) }
            } catch {
                outcome.fault = error
            }
            precondition(outcome.fault != nil || reader.held <= 65_535 + 4096 + 16)
        }
        return outcome
    }
}
