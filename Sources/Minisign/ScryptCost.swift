// scrypt (RFC 7914) with the cost parameters as minisign's files have them.
import CCrypto
import Host

/// The cost of deriving a key with scrypt: its parameters N and p; r is always 8.
///
/// Files have libsodium's two limits instead. This maps them as libsodium does
/// (`pickparams` in pwhash_scryptsalsa208sha256.c).
struct ScryptCost: Equatable {
    /// The limits that `minisign -G` writes: the upper ones, or less where memory is short.
    ///
    /// Others are refused, so that a hostile file costs at most 1 GiB of memory (of `memory`, in
    /// bytes) and a few seconds. With little memory and many operations, p would be half a million.
    static let operations: ClosedRange<UInt64> = 32_768...33_554_432
    static let memory: ClosedRange<UInt64> = 16_777_216...1_073_741_824

    private static let r: UInt64 = 8

    /// N, a power of two; a derivation needs 1024 × (N + p) bytes.
    let n: UInt64
    let p: UInt64

    /// `operations` and `memory` (bytes): libsodium's opslimit and memlimit.
    init(operations: UInt64, memory: UInt64) throws(Failure) {
        guard Self.operations.contains(operations), Self.memory.contains(memory) else {
            throw Failure(
                "the minisign secret key asks for scrypt with opslimit \(operations) and "
                    + "memlimit \(memory), which minisign does not use; change its password with: "
                    + "minisign -C"
            )
        }
        let isFewOperations = operations < memory / 32
        let limit = isFewOperations ? operations / (4 * Self.r) : memory / (128 * Self.r)
        // The largest power of two that is not above the limit, which is 1024 or more.
        n = 1 << UInt64(63 - limit.leadingZeroBitCount)
        p = isFewOperations ? 1 : operations / 4 / n / Self.r
    }

    /// Returns `length` bytes derived from a password; the caller wipes them.
    func derive(
        _ length: Int,
        from password: [UInt8],
        salt: ArraySlice<UInt8>
    ) throws(Failure) -> [UInt8] {
        var key = [UInt8](repeating: 0, count: length)
        let code = password.withUnsafeBytes { password in
            salt.withUnsafeBufferPointer { salt in
                EVP_PBE_scrypt(
                    password.bindMemory(to: CChar.self).baseAddress,
                    password.count,
                    salt.baseAddress,
                    salt.count,
                    n,
                    Self.r,
                    p,
                    // With room for the blocks beside N's and p's.
                    Self.memory.upperBound + 65_536,
                    &key,
                    key.count
                )
            }
        }
        guard code == 1 else {
            throw Failure(
                "cannot decrypt the minisign secret key: scrypt needs \((n + p) >> 10) MiB of "
                    + "memory; end other programs, or use a machine with more"
            )
        }
        return key
    }
}
