// Blocks collecting until the server has accepted this device (`upload.required`).
import Glibc
import Host
package import Intake
import Queue
package import Records
package import Setup
import Upload

/// The file in the state directory that names the endpoint which has accepted this device.
package struct EnrolmentMark {
    static let fileName = "enrolled"

    let path: String

    init(stateDirectory: String) { path = "\(stateDirectory)/\(Self.fileName)" }

    /// nil without a file or on a disk error; "" in a file of an older Waypost, which named none.
    private var endpoint: String? {
        SmallText.read(path, followsLink: false).map { String($0.prefix { !$0.isNewline }) }
    }

    /// Returns whether this endpoint has accepted the device; true if the file cannot be read.
    func names(_ target: String) -> Bool {
        guard let endpoint else { return access(path, F_OK) == 0 || errno != ENOENT }
        return endpoint.isEmpty || endpoint == target
    }

    /// Stores the endpoint that has accepted this device.
    ///
    /// `owner`: the new owner of the file. Throws a Failure with a remedy.
    func write(_ target: String, owner: FileOwner? = nil) throws(Failure) {
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

/// An intake sink that refuses records of other programs while the sources may not collect.
package struct EnrolledSink: IntakeSink {
    let queue: any IntakeSink
    let whyNot: @Sendable () -> String?

    package init(queue: any IntakeSink, whyNot: @escaping @Sendable () -> String?) {
        self.queue = queue
        self.whyNot = whyNot
    }

    package var putBytes: Int { queue.putBytes }

    package func refusal(of stream: String) -> String? { queue.refusal(of: stream) }

    package func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void) {
        if let why = whyNot() { return done(Failure(why)) }
        queue.put(records, done: done)
    }
}
