// Reading encrypted BTHome advertisements (bthome.io/encryption) with libcrypto's AES-CCM.
import CCrypto
package import Records

/// Why the readings of a BTHome advertisement are left out though there is a key for its device.
package enum UnreadReason: Sendable, Hashable {
    case wrongKey
    case notEncrypted
    case replayed

    /// For a person: what is wrong with a device, and what to do.
    package func text(of device: BluetoothAddress) -> String {
        switch self {
        case .wrongKey:
            "\(device): its BTHome data does not fit its key in beacons.bindkeys, so its readings "
                + "are left out; compare the key with the device's"
        case .notEncrypted:
            "\(device): sends BTHome data that is not encrypted though beacons.bindkeys has its key, "
                + "so its readings are not believed; take the key out if encryption is off"
        case .replayed:
            "\(device): BTHome data came with a counter that was passed already, so its readings are "
                + "left out until it counts on from there: the device was restarted, or somebody is "
                + "sending recorded data"
        }
    }
}

/// The one owner of libcrypto's AES-128-CCM and of a context for it.
///
/// Not private: other modules hold the keys by value, and compilers lose the metadata of a private part.
struct CCMCipher: ~Copyable {
    /// nil when they are not needed, or when there is no memory for them: then nothing can be read.
    private let context: OpaquePointer?
    private let algorithm: OpaquePointer?

    init(isNeeded: Bool) {
        context = isNeeded ? EVP_CIPHER_CTX_new() : nil
        algorithm = isNeeded ? EVP_CIPHER_fetch(nil, "AES-128-CCM", nil) : nil
    }

    deinit {
        // Wipes the key, too.
        EVP_CIPHER_CTX_free(context)
        EVP_CIPHER_free(algorithm)
    }

    /// The plain text; nil where key, nonce and tag do not belong to each other.
    func open(_ sealed: SealedPayload, key: [UInt8], nonce: [UInt8]) -> [UInt8]? {
        let count = sealed.ciphertext.count
        var tag = sealed.tag
        guard let context, let algorithm, key.count == 16, !tag.isEmpty, count > 0,
            // After a tag that was wrong, a context that is not reset refuses right ones.
            EVP_CIPHER_CTX_reset(context) == 1,
            EVP_DecryptInit_ex(context, algorithm, nil, nil, nil) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(nonce.count), nil) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1,
            EVP_DecryptInit_ex(context, nil, nil, key, nonce) == 1
        else { return nil }
        var plain = [UInt8](repeating: 0, count: count + 16)
        var length: Int32 = 0
        guard EVP_DecryptUpdate(context, &plain, &length, sealed.ciphertext, Int32(count)) == 1,
            length >= 0, Int(length) <= plain.count
        else { return nil }
        return Array(plain.prefix(Int(length)))
    }
}

/// The keys of encrypted devices, and what reads with them.
package struct BTHomeKeys: ~Copyable {
    private let keys: [BluetoothAddress: [UInt8]]
    private let cipher: CCMCipher

    /// `keys`: 16 bytes each.
    package init(_ keys: [BluetoothAddress: [UInt8]]) {
        self.keys = keys
        cipher = CCMCipher(isNeeded: !keys.isEmpty)
    }

    /// Reads a beacon's readings if there is a key for it; without one it stays as it is.
    ///
    /// Returns why it could not, or would not: what is not encrypted may be anybody's.
    package func read(
        _ beacon: inout DecodedBeacon,
        from sender: BluetoothAddress
    ) -> UnreadReason? {
        guard beacon.kind == .bthome, !keys.isEmpty, let key = keys[beacon.device ?? sender] else {
            return nil
        }
        guard let sealed = beacon.sealed else {
            guard !beacon.telemetry.isEmpty else { return nil }
            beacon.telemetry = Telemetry()
            beacon.mark = nil
            return .notEncrypted
        }
        let nonce = nonce(sealed, beacon.device ?? sender)
        guard let plain = cipher.open(sealed, key: key, nonce: nonce) else { return .wrongKey }
        BTHome.read(plain[...], into: &beacon)
        beacon.mark = .counter(sealed.counter)
        // Objects that this program does not know may be read by another one later.
        if !beacon.telemetry.isEmpty { beacon.data = [] }
        return nil
    }

    /// Address, UUID, device information and counter, as they stand in the air but for the address.
    private func nonce(_ sealed: SealedPayload, _ device: BluetoothAddress) -> [UInt8] {
        var nonce: [UInt8] = (0..<6).map {
            UInt8(truncatingIfNeeded: device.value >> (40 - 8 * $0))
        }
        nonce += [0xD2, 0xFC, sealed.information]
        nonce += (0..<4).map { UInt8(truncatingIfNeeded: sealed.counter >> (8 * $0)) }
        return nonce
    }
}
