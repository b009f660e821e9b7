// Decrypts BTHome advertisements (bthome.io/encryption) with libcrypto's AES-CCM.
import CCrypto
import Host
package import Records

/// The reason why a BTHome advertisement's readings are left out despite a key for its device.
package enum UnreadReason: Sendable, Hashable {
    case wrongKey
    case notEncrypted
    case replayed

    /// Returns a message: the device, the problem and the remedy.
    package func text(of device: BluetoothAddress) -> String {
        switch self {
        case .wrongKey:
            "\(device): its BTHome data does not fit its key in beacons.bindkeys, so its readings "
                + "are left out; compare the key with the device's"
        case .notEncrypted:
            "\(device): sends BTHome data that is not encrypted though beacons.bindkeys has its key, "
                + "so its readings are not believed; remove the key if encryption is off"
        case .replayed:
            "\(device): its BTHome counter went back, so its readings are left out "
                + "until it rises again: the device was restarted, or somebody is "
                + "replaying recorded data"
        }
    }
}

/// The only owner of libcrypto's AES-128-CCM and of a context for it.
///
/// Not private: other modules hold the keys by value, and compilers lose the metadata of a private
/// member.
struct CCMCipher: ~Copyable {
    /// nil when not needed or out of memory; then nothing can be decrypted.
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

    /// Decrypts a payload; nil if key, nonce and tag do not match.
    func open(_ sealed: SealedPayload, key: [UInt8], nonce: [UInt8]) -> [UInt8]? {
        let count = sealed.ciphertext.count
        var tag = sealed.tag
        guard let context, let algorithm, key.count == 16, !tag.isEmpty, count > 0,
            // Reset the context first: after one wrong tag it would also reject valid tags.
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

/// The keys of encrypted devices, and decryption with them.
package struct BTHomeKeys: ~Copyable {
    private let keys: [BluetoothAddress: [UInt8]]
    private let cipher: CCMCipher

    /// `keys`: 16 bytes each.
    package init(_ keys: [BluetoothAddress: [UInt8]]) {
        self.keys = keys
        cipher = CCMCipher(isNeeded: !keys.isEmpty)
    }

    /// Decrypts a beacon's readings if there is a key for it; otherwise changes nothing.
    ///
    /// Returns the reason if readings were dropped. Unencrypted data of a device with a key is
    /// dropped, because anybody could send it.
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
        // Keeps the payload if nothing was read: a later version may know its objects.
        if !beacon.telemetry.isEmpty { beacon.data = [] }
        return nil
    }

    /// Returns the nonce: address, UUID, device information and counter, in the order in which they
    /// are sent, except for the address (most significant byte first).
    private func nonce(_ sealed: SealedPayload, _ device: BluetoothAddress) -> [UInt8] {
        var nonce = Array(bigEndian(device.value).suffix(6))
        nonce += [0xD2, 0xFC, sealed.information]
        return nonce + littleEndian(sealed.counter)
    }
}
