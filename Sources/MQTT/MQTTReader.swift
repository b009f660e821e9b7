// Splits bytes from a broker into packets, with bounded memory.

/// Bytes that are not what a broker may send (MQTT 3.1.1).
struct MQTTError: Error, Sendable, Equatable {
    var message: String
}

/// Collects bytes and returns the packets in them.
///
/// Any bytes give packets or a fault. A PUBLISH with a payload beyond `payloadLimit` is returned
/// without it, and its bytes are skipped as they arrive, so that it can be acknowledged.
struct MQTTReader: Sendable {
    /// The most bytes of a payload that are returned.
    let payloadLimit: Int
    private var buffer: [UInt8] = []
    /// The first byte in `buffer` that is not part of a returned packet.
    private var at = 0
    /// A PUBLISH whose payload is being skipped, and the bytes still to come.
    private var skipping: (message: MQTTMessage, left: Int)?

    /// The most bytes of a packet other than PUBLISH: a SUBACK for many filters.
    private static let otherLimit = 4096

    init(payloadLimit: Int) {
        self.payloadLimit = payloadLimit
    }

    /// Bytes held for packets that are not complete, for tests.
    var held: Int { buffer.count - at }

    /// Adds bytes that have arrived.
    mutating func append(_ bytes: [UInt8]) {
        buffer.removeFirst(at)
        at = 0
        buffer += bytes
    }

    /// Returns the next packet; nil if more bytes must arrive first.
    mutating func next() throws(MQTTError) -> MQTTPacket? {
        if skipping != nil { return skip() }
        guard let (first, length, start) = try header() else { return nil }
        let kind = first >> 4
        if kind == 3 { return try publish(flags: first & 0x0F, length, start) }
        // Before the rest arrives: something else than MQTT may never send it.
        guard Self.isPossible(first, length) else { throw Self.unknown(first, length) }
        guard buffer.count - start >= length else { return nil }
        let body = buffer[start..<start + length]
        at = start + length
        return try Self.packet(first, body)
    }

    /// Reads the fixed header: the first byte, the length of the rest, and where the rest begins.
    private func header() throws(MQTTError) -> (first: UInt8, length: Int, start: Int)? {
        guard at < buffer.count else { return nil }
        var length = 0
        for index in 0..<4 {
            let place = at + 1 + index
            guard place < buffer.count else { return nil }
            length |= Int(buffer[place] & 0x7F) << (7 * index)
            if buffer[place] & 0x80 == 0 { return (buffer[at], length, place + 1) }
        }
        throw MQTTError(message: "a packet whose length has more than four bytes")
    }

    private static func packet(
        _ first: UInt8,
        _ body: ArraySlice<UInt8>
    ) throws(MQTTError) -> MQTTPacket {
        let bytes = Array(body)
        let id = bytes.count >= 2 ? UInt16(bytes[0]) << 8 | UInt16(bytes[1]) : 0
        switch (first, bytes.count) {
        case (0x20, 2) where bytes[0] <= 1:
            return .connectAck(isPresent: bytes[0] == 1, code: bytes[1])
        case (0x40, 2) where id > 0: return .publishAck(id: id)
        case (0x90, 3...) where id > 0:
            guard bytes[2...].allSatisfy({ $0 <= 2 || $0 == 0x80 }) else { break }
            return .subscribeAck(id: id, grants: Array(bytes[2...]))
        case (0xB0, 2) where id > 0: return .unsubscribeAck(id: id)
        case (0xD0, 0): return .pingResponse
        default: break
        }
        throw unknown(first, bytes.count)
    }

    private static func isPossible(_ first: UInt8, _ length: Int) -> Bool {
        switch first {
        case 0x20, 0x40, 0xB0: length == 2
        case 0x90: (3...otherLimit).contains(length)
        default: first == 0xD0 && length == 0
        }
    }

    private static func unknown(_ first: UInt8, _ length: Int) -> MQTTError {
        let shown = "0x\(String(first, radix: 16))"
        return MQTTError(message: "a packet that begins with \(shown) and has \(length) bytes")
    }

    // MARK: PUBLISH

    /// Reads a PUBLISH; returns nil until it has arrived, or its head if it is too long.
    private mutating func publish(
        flags: UInt8,
        _ length: Int,
        _ start: Int
    ) throws(MQTTError) -> MQTTPacket? {
        let qos = flags >> 1 & 3
        // This client never asks for QoS 2, and QoS 0 is never sent twice.
        guard qos <= 1, qos == 1 || flags & 8 == 0 else {
            throw MQTTError(message: "a message with the flags 0x\(String(flags, radix: 16))")
        }
        let idBytes = qos == 1 ? 2 : 0
        guard length >= 2 + idBytes else { throw MQTTError(message: "a message without a topic") }
        guard buffer.count - start >= 2 else { return nil }
        let topicBytes = Int(buffer[start]) << 8 | Int(buffer[start + 1])
        let head = 2 + topicBytes + idBytes
        guard head <= length else {
            throw MQTTError(message: "a message whose topic is longer than the message")
        }
        let isTooLong = length - head > payloadLimit
        guard buffer.count - start >= (isTooLong ? head : length) else { return nil }
        var message = MQTTMessage(
            topic: try Self.topic(buffer[start + 2..<start + 2 + topicBytes]),
            payload: isTooLong ? [] : Array(buffer[start + head..<start + length]),
            qos: qos,
            isRetained: flags & 1 != 0,
            isDuplicate: flags & 8 != 0
        )
        if qos == 1 {
            let place = start + head - 2
            message.id = UInt16(buffer[place]) << 8 | UInt16(buffer[place + 1])
            guard message.id > 0 else { throw MQTTError(message: "a message with the id 0") }
        }
        guard isTooLong else {
            at = start + length
            return .publish(message)
        }
        message.skipped = length - head
        at = start + head
        skipping = (message, message.skipped)
        return skip()
    }

    private static func topic(_ bytes: ArraySlice<UInt8>) throws(MQTTError) -> String {
        guard let topic = String(validating: bytes, as: UTF8.self), !topic.isEmpty,
            !topic.utf8.contains(where: { $0 == 0 || $0 == 0x23 || $0 == 0x2B })
        else { throw MQTTError(message: "a message whose topic is not a valid topic") }
        return topic
    }

    private mutating func skip() -> MQTTPacket? {
        guard let (message, left) = skipping else { return nil }
        let count = min(left, buffer.count - at)
        at += count
        guard count == left else {
            skipping = (message, left - count)
            return nil
        }
        skipping = nil
        return .publish(message)
    }
}
