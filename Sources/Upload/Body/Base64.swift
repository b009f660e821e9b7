// Encodes base64 (RFC 4648, section 4) directly into the JSON being built.

/// Encodes pieces of any length into one base64 text.
struct Base64Encoder {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    /// At most two bytes, which do not fill a group of three yet.
    private var rest: [UInt8] = []

    mutating func encode(_ bytes: [UInt8], into text: inout [UInt8]) {
        bytes.withUnsafeBufferPointer { input in
            var at = 0
            // Complete the group that the previous piece began.
            while !rest.isEmpty, at < input.count {
                rest.append(input[at])
                at += 1
                guard rest.count == 3 else { continue }
                rest.withUnsafeBufferPointer { Self.groups($0, into: &text) }
                rest.removeAll(keepingCapacity: true)
            }
            let whole = at + (input.count - at) / 3 * 3
            Self.groups(UnsafeBufferPointer(rebasing: input[at..<whole]), into: &text)
            rest.append(contentsOf: input[whole...])
        }
    }

    /// Encodes whole groups of three, a few hundred at a time, in a stack buffer.
    private static func groups(_ input: UnsafeBufferPointer<UInt8>, into text: inout [UInt8]) {
        let size = 384 * 3
        alphabet.withUnsafeBufferPointer { alphabet in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: size / 3 * 4) { output in
                output.initialize(repeating: 0)
                for start in stride(from: 0, to: input.count, by: size) {
                    var place = 0
                    for at in stride(from: start, to: min(input.count, start + size), by: 3) {
                        let group =
                            Int(input[at]) << 16 | Int(input[at + 1]) << 8 | Int(input[at + 2])
                        output[place] = alphabet[group >> 18]
                        output[place + 1] = alphabet[group >> 12 & 63]
                        output[place + 2] = alphabet[group >> 6 & 63]
                        output[place + 3] = alphabet[group & 63]
                        place += 4
                    }
                    text.append(contentsOf: output[..<place])
                }
            }
        }
    }

    mutating func finish(into text: inout [UInt8]) {
        guard !rest.isEmpty else { return }
        let group = Int(rest[0]) << 16 | (rest.count > 1 ? Int(rest[1]) << 8 : 0)
        text.append(Self.alphabet[group >> 18])
        text.append(Self.alphabet[group >> 12 & 63])
        text.append(rest.count > 1 ? Self.alphabet[group >> 6 & 63] : UInt8(ascii: "="))
        text.append(UInt8(ascii: "="))
        rest = []
    }
}
