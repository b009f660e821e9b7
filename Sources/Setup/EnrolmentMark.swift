// Remembers that the server has accepted this device (`upload.required`).
import Glibc
package import Host
import Upload

/// The file in the state directory that names the endpoint which has accepted this device.
package struct EnrolmentMark {
    package static let fileName = "enrolled"

    package let path: String

    package init(stateDirectory: String) { path = "\(stateDirectory)/\(Self.fileName)" }

    /// nil without a file or on a disk error; "" in a file of an older Waypost, which named none.
    private var endpoint: String? {
        SmallText.read(path, followsLink: false).map { String($0.prefix { !$0.isNewline }) }
    }

    /// Returns whether this endpoint has accepted the device; true if the file cannot be read.
    package func names(_ target: String) -> Bool {
        guard let endpoint else { return access(path, F_OK) == 0 || errno != ENOENT }
        return endpoint.isEmpty || endpoint == target
    }

    /// Stores the endpoint that has accepted this device.
    ///
    /// `owner`: the new owner of the file. Throws a Failure with a remedy.
    package func write(_ target: String, owner: FileOwner? = nil) throws(Failure) {
        do {
            try SmallFile.replace(path, Array("\(target)\n".utf8), mode: 0o644, owner: owner)
        } catch {
            throw Failure(
                "the server accepted this device, but that cannot be stored: \(path): \(error.reason); "
                    + "it is asked again at the next start",
                code: error.code == ENOSPC || error.code == EDQUOT ? .storageFull : nil
            )
        }
    }
}

extension Configuration {
    package var enrolmentMark: EnrolmentMark { EnrolmentMark(stateDirectory: stateDirectory) }

    /// Why nothing may be collected yet; nil if collecting is allowed.
    package var whyNotCollecting: String? {
        guard upload.isRequired else { return nil }
        guard let target = upload.target else {
            return "not enrolled: `sudo waypost enroll`, or upload.required = false"
        }
        return enrolmentMark.names(target) ? nil : "waiting for the server to accept this device"
    }
}
