// Who this device is at the server: configured, or a UUID made once and kept.
import CLinux
import Glibc
package import Host

/// The device's id.
package enum DeviceID {
    /// The file in the state directory that keeps it.
    package static let fileName = "device_id"

    /// The configured id, or for `auto` the kept one, made now if there is none.
    ///
    /// A damaged file is repaired with `copy`, the id that the database knows, and `warn` is given a line about it.
    /// `owner`: whom a file that is made belongs to. Throws a `Failure` when the id can be neither read nor made, or is
    /// damaged and there is no copy: a new one would be a new device to the server, so that is a person's choice.
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
        // Another process may have been first: what is on disk counts.
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

    /// The id kept in the state directory, nil if there is none yet.
    package static func kept(in stateDirectory: String) throws(Failure) -> String? {
        switch try read(in: stateDirectory) {
        case .none: return nil
        case .id(let id): return id
        case .damaged(let damage): throw damage
        }
    }

    /// What was found in the state directory.
    private enum KeptFile {
        case none
        case id(String)
        /// It was read and holds no UUID.
        case damaged(Failure)
    }

    /// Throws when there is a file that cannot be read: it may well hold the id.
    private static func read(in stateDirectory: String) throws(Failure) -> KeptFile {
        let path = "\(stateDirectory)/\(fileName)"
        let file: SmallFile
        do {
            // Root must not read through a link that the service's user has put there.
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

    /// Why a text is no device id: 1 to 64 of the characters that are safe in a header, a path and a table.
    static func problem(_ text: String) -> String? {
        let bytes = text.utf8
        let safe = bytes.allSatisfy { byte in
            byte.isLetter || byte.isDigit || [UInt8(ascii: "."), 95, 45].contains(byte)
        }
        guard (1...64).contains(bytes.count), safe else {
            return "\"\(printable(text))\" is no device id"
        }
        // The receiver names a folder so: it must not be hidden (`.x`) and not lead upwards (`..`).
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
