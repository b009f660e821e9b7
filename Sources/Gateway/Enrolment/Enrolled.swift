// Nothing is collected for a device that its server does not know (`upload.required`).
import Glibc
import Host
import Queue
import Records
import Upload

/// A file in the state directory that names the endpoint which has accepted this device.
struct EnrolmentMark {
    static let fileName = "enrolled"

    let path: String

    init(stateDirectory: String) { path = "\(stateDirectory)/\(Self.fileName)" }

    /// nil without a mark, or where the disk does not answer; "" in one of an older Waypost, which named none.
    private var endpoint: String? {
        SmallText.read(path, followsLink: false).map { String($0.prefix { !$0.isNewline }) }
    }

    /// Whether this endpoint has accepted the device, as far as can be known.
    func names(_ target: String) -> Bool {
        guard let endpoint else { return access(path, F_OK) == 0 || errno != ENOENT }
        return endpoint.isEmpty || endpoint == target
    }

    /// Stores the endpoint that has accepted this device.
    ///
    /// `owner`: whom the file then belongs to. Throws a Failure that says what to do.
    func write(_ target: String, owner: FileOwner? = nil) throws(Failure) {
        do {
            try SmallFile.replace(path, Array("\(target)\n".utf8), mode: 0o644, owner: owner)
        } catch {
            throw Failure(
                "the server accepted this device, but that cannot be noted: \(path): \(error.reason); "
                    + "it is asked again at the next start",
                code: error.code == ENOSPC || error.code == EDQUOT ? .storageFull : nil
            )
        }
    }
}

extension Configuration {
    var enrolmentMark: EnrolmentMark { EnrolmentMark(stateDirectory: stateDirectory) }

    /// Why nothing may be collected yet; nil where it may.
    var whyNotCollecting: String? {
        guard upload.isRequired else { return nil }
        guard let target = upload.target else {
            return "not enrolled: `sudo waypost enroll`, or upload.required = false"
        }
        return enrolmentMark.names(target) ? nil : "waiting for the server to accept this device"
    }
}

/// Refuses records of other programs as long as the sources may not collect.
struct EnrolledSink: IntakeSink {
    let queue: any IntakeSink
    let whyNot: @Sendable () -> String?

    var putBytes: Int { queue.putBytes }

    func refusal(of stream: String) -> String? { queue.refusal(of: stream) }

    func put(_ records: [UserRecord], done: @escaping @Sendable ((any Error)?) -> Void) {
        if let why = whyNot() { return done(Failure(why)) }
        queue.put(records, done: done)
    }
}
