// SHA-256 (FIPS 180-4), which object stores check a body by.

/// Digests bytes that come in pieces of any length.
struct SHA256 {
    private static let blockSize = 64
    private var state: [UInt32] = [
        0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB,
        0x5BE0_CD19,
    ]
    private var schedule = [UInt32](repeating: 0, count: 64)
    /// Less than a block that was not digested yet.
    private var rest: [UInt8] = []
    private var length: UInt64 = 0

    mutating func append(_ bytes: [UInt8]) {
        length += UInt64(bytes.count)
        let input = rest.isEmpty ? bytes : rest + bytes
        let whole = input.count / Self.blockSize * Self.blockSize
        input.withUnsafeBufferPointer { input in
            for start in stride(from: 0, to: whole, by: Self.blockSize) {
                digest(UnsafeBufferPointer(rebasing: input[start..<(start + Self.blockSize)]))
            }
        }
        rest = Array(input[whole...])
    }

    /// The 32 bytes of the digest as lower-case hex; nothing may be appended after it.
    mutating func finish() -> String {
        let bits = length * 8
        let zeros = (Self.blockSize * 2 - 9 - rest.count) % Self.blockSize
        var padding: [UInt8] = [0x80]
        padding += [UInt8](repeating: 0, count: zeros)
        for shift in stride(from: 56, through: 0, by: -8) {
            padding.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
        }
        append(padding)
        var bytes: [UInt8] = []
        for word in state {
            for shift in [24, 16, 8, 0] as [UInt32] {
                bytes.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return Hex.text(bytes)
    }

    /// One block of 64 bytes (section 6.2.2).
    private mutating func digest(_ block: UnsafeBufferPointer<UInt8>) {
        schedule.withUnsafeMutableBufferPointer { w in
            Self.expand(block, into: w)
            state.withUnsafeMutableBufferPointer { state in
                Self.constants.withUnsafeBufferPointer { Self.compress(w, $0, into: state) }
            }
        }
    }

    private static func expand(
        _ block: UnsafeBufferPointer<UInt8>,
        into w: UnsafeMutableBufferPointer<UInt32>
    ) {
        for t in 0..<16 {
            let at = t * 4
            w[t] = UInt32(block[at]) << 24 | UInt32(block[at + 1]) << 16
            w[t] |= UInt32(block[at + 2]) << 8 | UInt32(block[at + 3])
        }
        for t in 16..<64 {
            let (near, far) = (w[t - 2], w[t - 15])
            let s1 = rotate(near, 17) ^ rotate(near, 19) ^ near >> 10
            let s0 = rotate(far, 7) ^ rotate(far, 18) ^ far >> 3
            w[t] = s1 &+ w[t - 7] &+ s0 &+ w[t - 16]
        }
    }

    private static func compress(
        _ w: UnsafeMutableBufferPointer<UInt32>,
        _ k: UnsafeBufferPointer<UInt32>,
        into state: UnsafeMutableBufferPointer<UInt32>
    ) {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for t in 0..<64 {
            let s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
            let choice = (e & f) ^ (~e & g)
            let first = h &+ s1 &+ choice &+ k[t] &+ w[t]
            let s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
            let majority = (a & b) ^ (a & c) ^ (b & c)
            (h, g, f, e) = (g, f, e, d &+ first)
            (d, c, b, a) = (c, b, a, first &+ s0 &+ majority)
        }
        for (index, value) in [a, b, c, d, e, f, g, h].enumerated() { state[index] &+= value }
    }

    @inline(__always)
    private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word >> count | word << (32 - count)
    }

    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4,
        0xab1c_5ed5, 0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe,
        0x9bdc_06a7, 0xc19b_f174, 0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f,
        0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da, 0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7,
        0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967, 0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc,
        0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85, 0xa2bf_e8a1, 0xa81a_664b,
        0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070, 0x19a4_c116,
        0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7,
        0xc671_78f2,
    ]
}
