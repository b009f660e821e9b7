// The device's id at the server: configured, or a UUID made once and stored.
import CLinux
import Glibc
package import Host

/// Finds, makes and repairs the device's id.
package enum DeviceID {
    /// The file in the state directory that stores the id.
    package static let fileName = "device_id"

    /// Returns the configured id, or for `auto` the stored one, which it makes if there is none.
    ///
    /// Repairs a damaged file with `copy`, the id in the database, and calls `warn` with a line.
    /// `owner`: the owner of a new file. Throws a `Failure` if the id can be neither read nor made,
    /// or is damaged without a copy: a new id would be a new device to the server, so a person
    /// decides.
    package static func resolve(
        _ configured: String,
        stateDirectory: String,
        copy: String? = nil,
        owner: FileOwner? = nil,
        warn: (String) -> Void = { _ in }
    ) throws(Failure) -> String {
        guard configured == "auto" else { return configured }
        switch try read(in: stateDirectory) {
        case .id(let id): return id
        case .damaged(let damage):
            let id = try repaired(stateDirectory, with: copy, after: damage)
            warn(
                "device id file \(stateDirectory)/\(fileName) was damaged: it held no UUID; "
                    + "it now holds \(id), the id that the database knows"
            )
            return id
        case .none: break
        }
        do {
            let line = Array("\(newUUID())\n".utf8)
            _ = try SmallFile.create(fileName, in: stateDirectory, line, owner: owner)
        } catch {
            throw Failure(
                "device id cannot be kept in \(stateDirectory): \(error.reason)",
                code: error.code == ENOSPC ? .storageFull : nil
            )
        }
        // Another process may have been first: the file on disk counts.
        guard let kept = try kept(in: stateDirectory) else {
            throw Failure("device id vanished from \(stateDirectory)/\(fileName) as it was made")
        }
        return kept
    }

    private static func repaired(
        _ directory: String,
        with copy: String?,
        after damage: Failure
    ) throws(Failure) -> String {
        guard let copy, isUUID(copy) else { throw damage }
        do {
            try SmallFile.replace("\(directory)/\(fileName)", Array("\(copy)\n".utf8), mode: 0o644)
        } catch {
            throw Failure(
                "\(damage.message); repairing it failed: \(error.reason)",
                code: damage.code
            )
        }
        return copy
    }

    /// Returns the id stored in the state directory, nil if there is none yet.
    package static func kept(in stateDirectory: String) throws(Failure) -> String? {
        switch try read(in: stateDirectory) {
        case .none: return nil
        case .id(let id): return id
        case .damaged(let damage): throw damage
        }
    }

    /// The result of reading the file.
    private enum KeptFile {
        case none
        case id(String)
        /// The file was read and does not hold a UUID.
        case damaged(Failure)
    }

    /// Throws if a file exists and cannot be read: it may hold the id.
    private static func read(in stateDirectory: String) throws(Failure) -> KeptFile {
        let path = "\(stateDirectory)/\(fileName)"
        let file: SmallFile
        do {
            // Root must not follow a link that the service's user has put there.
            file = try SmallFile.read(path, limit: 64, followsLink: geteuid() != 0)
        } catch {
            if error.code == ENOENT { return .none }
            throw Failure("device id file \(path): \(error.reason)")
        }
        let text = trimmed(String(decoding: file.bytes, as: UTF8.self))
        if isUUID(text) { return .id(text) }
        let damage =
            "device id file \(path) is damaged: it holds no UUID; write the id that the server "
            + "knows into it, or delete it to become a new device"
        return .damaged(Failure(damage))
    }

    /// Returns why a text is not a valid device id, or nil.
    ///
    /// Valid are 1 to 64 characters that are safe in a header, a path and a table.
    @Sendable static func problem(_ text: String) -> String? {
        let bytes = text.utf8
        let safe = bytes.allSatisfy { byte in
            byte.isLetter || byte.isDigit || [UInt8(ascii: "."), 95, 45].contains(byte)
        }
        guard (1...64).contains(bytes.count), safe else {
            return "\"\(printable(text))\" is not a valid device id"
        }
        // The server makes a folder of this name: it must be neither hidden (`.x`) nor `..`.
        return text.hasPrefix(".") ? "\"\(text)\" begins with a dot, which no server takes" : nil
    }

    private static func isUUID(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return parts.map(\.count) == [8, 4, 4, 4, 12]
            && parts.joined().allSatisfy { byte in
                byte.isDigit || (65...70).contains(byte) || (97...102).contains(byte)
            }
    }

    /// A random UUID (RFC 9562, version 4) in lower case.
    private static func newUUID() -> String {
        // The system's generator is getrandom(2).
        var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        var text = ""
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text += "-" }
            text += byte < 16 ? "0" : ""
            text += String(byte, radix: 16)
        }
        return text
    }
}

extension Configuration {
    /// The configured device id, or the stored one for `auto`; nil if there is none or it cannot be
    /// read.
    package var knownDeviceID: String? {
        deviceID == "auto" ? (try? DeviceID.kept(in: stateDirectory)) : deviceID
    }
}
